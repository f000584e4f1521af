"""How a request is laid out in tokens: stable parts first, the prefix last."""
