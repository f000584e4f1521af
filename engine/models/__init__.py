"""Families of models, one folder each, after the protocol in `base`; `registry` knows which there are."""
