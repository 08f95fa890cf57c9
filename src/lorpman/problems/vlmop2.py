"""VLMOP2 (Van Veldhuizen and Lamont, 1999): two bells, a concave front."""

from lorpman.problems.analytic import make_problem

PROBLEM = make_problem("vlmop2")
