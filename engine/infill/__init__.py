"""From a request to fill a gap to its candidates."""
