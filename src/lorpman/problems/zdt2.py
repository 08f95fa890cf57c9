"""ZDT2 (Zitzler, Deb and Thiele, 2000): a concave front on the bounds of a box."""

from lorpman.problems.analytic import make_problem

PROBLEM = make_problem("zdt2")
