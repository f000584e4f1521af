"""What measures the engine: benchmarks, evaluation and the baselines beside it."""
