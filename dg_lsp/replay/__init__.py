"""Replays editing sessions, recorded or generated, against a real language server."""
