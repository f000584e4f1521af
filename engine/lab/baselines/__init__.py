"""Other ways to fill a gap with the same weights, to compare a fill with."""
