"""Training a canvas on a frozen coder: low-rank pairs that act on the rows of canvases alone."""
