"""Families of models, one file each, behind the protocol in `base`."""
