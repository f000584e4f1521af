"""What clients may ask of the server: a handler converts, awaits and converts back."""
