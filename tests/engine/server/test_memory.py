"""The garbage collector leaves alone what stays, until it is to be given back."""

from __future__ import annotations

import gc
import weakref

from engine.server import memory


class Knot:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


def test_what_stays_is_not_walked_through_until_it_is_given_back():
    try:
        knot = Knot()
        memory.settle()
        assert gc.get_freeze_count() > 0
        held = weakref.ref(knot)
        del knot
        gc.collect()
        assert held() is not None
        memory.give_back()
        assert held() is None
    finally:
        gc.unfreeze()
