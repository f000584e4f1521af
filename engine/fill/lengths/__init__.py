"""How wide a gap is: strategies, and what they need."""
