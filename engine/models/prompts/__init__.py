"""The layout of a request in tokens: stable parts first, the prefix last."""
