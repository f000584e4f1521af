"""What is known of released checkpoints, and which one suits a machine."""

from __future__ import annotations

import pytest

from dg_lsp.cli import run
from engine.loader.released import RELEASED, advice, known, recommended

GIB = 1 << 30


@pytest.mark.parametrize(
    ("gpus", "hub_id"),
    [
        ((), None),
        ((1 * GIB,), None),
        ((5 * GIB,), "fredzzp/open-dcoder-0.5B"),
        ((23 * GIB,), "Dream-org/DreamOn-v0-7B"),
        ((2 * GIB, 80 * GIB), "Dream-org/DreamOn-v0-7B"),
    ],
)
def test_the_best_one_that_fits_is_recommended(gpus: tuple[int, ...], hub_id: str | None):
    best = recommended(gpus)
    assert (best.hub_id if best else None) == hub_id
    assert (hub_id or "bundled") in advice(gpus)


def test_memory_is_more_than_the_download():
    assert all(each.memory_nbytes > each.download_nbytes for each in RELEASED)


def test_a_hub_id_is_known_in_any_case():
    assert known("dream-org/dreamon-v0-7b") is RELEASED[0]
    assert known("someone/else") is None


def test_the_list_names_what_can_be_pulled(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["models"]) == 0
    out = capsys.readouterr().out
    assert all(each.hub_id in out and each.licence in out for each in RELEASED)
    assert "For this machine" in out
