"""Benchmarks of a model's speed on this machine, beside what bounds it and other ways to use the same weights."""
