"""The family `masked` under measurement."""
