"""Weights in 4 and 8 bit: how they lie in memory, and products with them."""
