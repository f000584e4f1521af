"""What others do with the same weights: what a fill is held against."""
