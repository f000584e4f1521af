"""Measures how good fills are: benchmarks with tests, gaps in real code, and baselines as rows of one table."""
