"""The resident process: its clients, who is served next, and the one thread that owns the model."""
