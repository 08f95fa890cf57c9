"""Speed and memory as ratios in one run: what ``lorpman bench`` measures, and how it is shown."""
