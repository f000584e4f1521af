"""Families of models, one folder each, behind the protocol in `base`; `registry` knows which there are."""
