"""Edits that the user requested: rewrites, fixes, filling placeholders."""
