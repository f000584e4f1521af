"""Shared by all tests."""

from hypothesis import settings

# A loaded machine is slow without being wrong.
settings.register_profile("dg", deadline=None)
settings.load_profile("dg")
