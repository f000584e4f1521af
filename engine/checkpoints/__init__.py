"""Model directories as they lie on disk, and where their weights go."""
