"""Plotly figures as plain mappings, for the page and the report.

The page's script adds the moving point, and the colours of text and lines. Every trace of a front
carries ``meta["run"]``, so that a run can be hidden, and ``customdata`` with the run and the place
of each point on its front, so that a click knows what was meant.
"""
