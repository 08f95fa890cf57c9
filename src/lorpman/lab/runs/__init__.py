"""Run directories: training into them, reading them, taking networks out of them."""
