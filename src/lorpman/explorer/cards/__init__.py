"""The cards of the explorer page, one file each: what it shows, and what answers put into it."""
