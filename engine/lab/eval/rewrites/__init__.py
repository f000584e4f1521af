"""Rewrites by instruction with tests, made by hand, and how well a model does them."""
