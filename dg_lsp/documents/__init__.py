"""Open documents: texts, positions in them, and how they change."""
