"""How good fills are: benchmarks with tests, gaps in real code, and the rows that a figure must stand beside."""
