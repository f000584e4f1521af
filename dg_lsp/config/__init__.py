"""Settings, switches, and which files are never shown to a model."""
