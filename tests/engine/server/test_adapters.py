"""Adapters in an engine that serves several windows at once."""

from pathlib import Path
from typing import Any

import pytest

from engine.common.messages import Fill, FillReply
from engine.common.request import Filled, FillRequest
from engine.fill.answering import answering
from engine.fill.executor import drive
from engine.fill.loading import load
from engine.models.adapters.applied import with_pairs
from tests.engine.adapters import ALPHA, RANK, drawn_pairs, put_adapter
from tests.engine.processes import home, running

TOY = Path(__file__).parents[2] / "models" / "toy-uniform"
PREFIX, SUFFIX = "let a = 3\nlet b = ", "\nprint a\n"
SEEDS = {"first": 11, "second": 12}


def request(folder: Path | None, seed: int) -> FillRequest:
    at = "" if folder is None else str(folder / "src")
    return FillRequest(prefix=PREFIX, suffix=SUFFIX, folder=at, seed=seed, n=2, width=6)


CLOSE = 0.02
"""Of scores (some -100 here) and confidences. Both processes multiply in one format, but where a tensor lies in memory
may change the order of a sum, and so its last digits. Another adapter's score is 5 to 20 away, and in another format
the same one's up to 4, with other texts."""


def words(filled: Filled) -> Any:
    return [each.text for each in filled.candidates], filled.steps


def numbers(filled: Filled) -> list[float]:
    return [number for each in filled.candidates for number in (each.score, *each.token_confidence)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory):
    base = load(str(TOY), "cpu").model
    with home() as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DG_LSP_STATE_DIR", place.environment["DG_LSP_STATE_DIR"])
        folders = {name: tmp_path_factory.mktemp(name) for name in SEEDS}
        for name, seed in SEEDS.items():
            put_adapter(base, folders[name], seed=seed)
        with running(place, "--model", str(TOY), "--device", "cpu"):
            yield place, folders


def test_two_windows_with_two_adapters_get_what_each_gets_alone(place: Any):
    place, folders = place
    alone: dict[tuple[str, int], Filled] = {}
    for name in (*SEEDS, ""):
        model: Any = load(str(TOY), "cpu").model
        if name:
            model = with_pairs(model, drawn_pairs(model, SEEDS[name]), ALPHA / RANK)
        for seed in range(2):
            alone[name, seed] = drive(model, answering(model, request(None, seed)))
    assert len({str(words(each)) for (_, seed), each in alone.items() if seed == 0}) == 3, (
        "they would not all say the same"
    )
    with place.client("one") as one, place.client("two") as two, place.client("three") as three:
        windows = {"first": one, "second": two, "": three}
        for seed in range(2):
            for name, wire in windows.items():
                wire.send(Fill(id=seed + 1, request=request(folders.get(name), seed)))
            for name, wire in windows.items():
                reply = wire.reply(seed + 1)
                assert isinstance(reply, FillReply), reply
                assert words(reply.filled) == words(alone[name, seed])
                assert numbers(reply.filled) == pytest.approx(numbers(alone[name, seed]), abs=CLOSE)
                assert reply.filled.adapter == str(folders[name] if name else "")
        status = one.status()
    assert {each.folder for each in status.adapters} == {str(each) for each in folders.values()}
    assert not any(each.trouble for each in status.adapters)
    assert status.shared_forwards == 0, "a pass has the weights of one model"
