"""Rewriting a selection as somebody says: what the model is told, drafts out of the old text, what of its answer may
stand."""
