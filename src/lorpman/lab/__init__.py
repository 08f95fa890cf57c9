"""The laboratory: problems, methods, runs, comparisons, benchmarks and the paper's tables."""
