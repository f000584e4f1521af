"""A session of one editor window: its messages, and which handler answers them."""
