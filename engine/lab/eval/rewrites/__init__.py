"""Rewrites by instruction: handmade tasks with tests, and how many of them a model does."""
