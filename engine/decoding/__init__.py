"""Canvases and the one loop that denoises them."""
