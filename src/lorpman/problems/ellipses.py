"""Two bowls that are long in different directions: a convex front over a curved set of points."""

from lorpman.problems.analytic import make_problem

PROBLEM = make_problem("ellipses")
