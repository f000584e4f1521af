"""Base of what is sent between processes."""

from __future__ import annotations

from msgspec import Struct


class Wire(Struct, frozen=True, forbid_unknown_fields=True):
    """Plain values, checked field by field against their types and limits when they are read (`engine.common.frames`).

    Type checkers want each class below to say `frozen=True` again.
    """
