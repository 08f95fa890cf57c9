"""Run directories: training into them, reading them, exporting networks from them."""
