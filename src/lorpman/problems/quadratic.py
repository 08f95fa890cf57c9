"""Two squared distances: a convex front."""

from lorpman.problems.analytic import make_problem

PROBLEM = make_problem("quadratic")
