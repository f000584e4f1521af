"""Families of models, one folder each. `base` has the interface, `registry` the list of families."""
