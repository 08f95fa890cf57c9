"""Looking at runs: the explorer page and the report. Needs the extra ``explore``."""
