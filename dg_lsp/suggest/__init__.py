"""Suggestions while the user types: requests, what is served again, acceptance and statistics."""
