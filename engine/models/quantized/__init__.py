"""Weights in 4 bit: as they lie in memory, and products with them."""
