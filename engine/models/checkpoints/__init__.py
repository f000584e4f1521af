"""Weights on disk: published formats, the catalogue, downloads, and what fits into memory."""
