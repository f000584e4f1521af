"""The way to the engine: found, started, asked, missed."""
