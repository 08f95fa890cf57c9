"""The commands that have a file of their own, and what several commands share."""
