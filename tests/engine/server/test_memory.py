"""The garbage collector leaves alone what stays, until it is to be given back."""

from __future__ import annotations

import gc
import mmap
import os
import sys
import weakref
from pathlib import Path

import pytest

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


@pytest.mark.skipif(sys.platform != "linux", reason="only there a file can be made to come from its disk again")
@pytest.mark.parametrize("mapped", [True, False])
def test_what_comes_from_a_disk_is_counted(tmp_path: Path, mapped: bool):
    path, nbytes = tmp_path / "weights", 8 << 20
    path.write_bytes(os.urandom(nbytes))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        before = memory.read_nbytes()
        if mapped:
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as read:
                assert sum(read[at] for at in range(0, nbytes, 4096)) > 0
        else:
            file.read()
    came = memory.read_nbytes() - before
    if came == 0:
        pytest.skip("the folder for tests is on no disk")
    assert came >= nbytes // 2
