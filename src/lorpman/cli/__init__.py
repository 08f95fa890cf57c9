"""The command line: one file per command, the options they share, and how they print."""
