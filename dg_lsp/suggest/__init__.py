"""What to suggest where somebody types, and what became of it."""
