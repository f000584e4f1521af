"""The server of one editor window, put together from its rooms."""
