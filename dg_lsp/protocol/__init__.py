"""The Language Server Protocol as this server speaks it."""
