"""Which tokens become noise: a share, in coherent spans, never what is kept."""

from __future__ import annotations

import random
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.fill.rewritten import noised_spans, resized, roomy
from engine.fill.tokens import OldTokens


def tokens(kept: list[bool]) -> OldTokens:
    return OldTokens(ids=tuple(range(len(kept))), bounds=tuple(range(len(kept) + 1)), kept=tuple(kept))


@given(st.lists(st.booleans(), max_size=60), st.floats(0.01, 1), st.integers(0, 99))
def test_the_share_is_met_and_what_is_kept_stays(kept, strength, seed):
    noised = noised_spans(kept, strength, random.Random(seed))
    free = kept.count(False)
    assert sum(noised) == (max(1, round(strength * free)) if free else 0)
    assert not any(noisy and stays for noisy, stays in zip(noised, kept, strict=True))


def test_spans_are_coherent():
    runs = []
    for seed in range(50):
        noised = noised_spans([False] * 60, 0.3, random.Random(seed))
        runs += [len(list(group)) for noisy, group in groupby(noised) if noisy]
    assert sum(runs) / len(runs) > 3


def test_room_comes_behind_each_span_as_far_as_there_is_any():
    kept = [False] * 4 + [True] * 2 + [False] * 4
    noised = [True] * 4 + [False] * 4 + [True] * 2
    assert roomy(tokens(kept), noised, 100).old == (0, 1, 2, 3, None, None, None, 4, 5, 6, 7, 8, 9, None, None)
    assert roomy(tokens(kept), noised, 12).old == (0, 1, 2, 3, None, None, 4, 5, 6, 7, 8, 9)
    assert roomy(tokens(kept), noised, 5).old == tuple(range(10))
    assert all(roomy(tokens(kept), noised, 100).kept[at] for at in (7, 8))


@pytest.mark.parametrize(("change", "size"), [(0, 6), (2, 8), (-1, 5), (-9, 4), (9, 8)])
def test_a_span_grows_or_shrinks_by_slots_but_never_to_nothing(change: int, size: int):
    noised = [False, False, True, True, True, False]
    row = resized(tokens([False] * 6), noised, change, room=8)
    assert len(row.old) == len(row.noised) == len(row.kept) == size
    assert (row.old[0], row.old[-1]) == (0, 5)
    assert sum(row.noised) == 3 + size - 6
