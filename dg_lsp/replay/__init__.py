"""Editing sessions, recorded or generated, played against a real language server as an editor would."""
