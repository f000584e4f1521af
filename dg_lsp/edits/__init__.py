"""Edits that somebody asked for."""
