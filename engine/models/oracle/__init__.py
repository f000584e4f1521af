"""A model without weights that knows the answers, for tests."""
