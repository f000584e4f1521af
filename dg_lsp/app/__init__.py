"""The server of one editor window, put together from the other packages."""
