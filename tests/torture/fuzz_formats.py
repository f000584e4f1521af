"""Part (c), files: marked text, text files, safetensors headers, configurations, tokenizers, sessions."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dg_lsp.replay.session import SessionError, read_session
from engine.common.errors import BadInput, EngineError, ModelError
from engine.common.marked import gap_at_markers, gap_between, parse_position
from engine.common.textfile import read_text
from engine.models.checkpoints.directory import INDEX_FILE, METADATA_FILE, read_header
from tests.torture.mutation import mutated, sentence, torn
from tests.torture.target import Example

_MARKED = ("▮", "x", "\n", "\r\n", "\r", "😋", "\t", "\u2028", "'", "(")
_POSITIONS = ("1", ":", "-", "0", "99999999999", " ", "٣", "²", "\n", "x")
_SESSION: list[dict[str, Any]] = [
    {"session": 1, "title": "t"},
    {"at": 0, "do": "open", "path": "a.py", "language": "python", "text": "x = 1\n", "cursor": 2},
    {"at": 400, "do": "type", "text": "r"},
    {"at": 520, "do": "delete", "count": 1},
    {"at": 900, "do": "accept", "text": "return 1"},
    {"at": 1500, "do": "move", "cursor": 0},
    {"at": 1700, "do": "undo"},
    {"at": 2000, "do": "focus", "path": "a.py"},
]
_TOLD = {"length": "discover", "widths": [2, 4], "context": 64, "layout": "tokens", "pinned": 8, "noise": "absorbing"}
_TOLD_MASKED = {
    "length": "calibrated",
    "widths": [2, 4],
    "prior": {"fast": 0.5, "fast_rate": 1.0, "slow": 0.5, "slow_rate": 0.1, "floor": 0.1},
    "masked": {
        "mask": "<|endoftext|>",
        "end": "<|endoftext|>",
        "shifted": True,
        "context": 64,
        "temperature": 0.5,
        "top_p": 0.9,
        "entropy_bound": 0.1,
    },
}


@contextmanager
def marked_text(chance: random.Random) -> Generator[Example]:
    """`▮` markers and LINE:COL."""

    def example(found: Any) -> None:
        text, at, to = sentence(_MARKED, chance), sentence(_POSITIONS, chance, 5), sentence(_POSITIONS, chance, 5)
        found.attempt(lambda: gap_at_markers(text), (BadInput,), repr(text))
        found.attempt(lambda: gap_between(text, parse_position(at), parse_position(to)), (BadInput,), (at, to))

    yield example


@contextmanager
def text_file(chance: random.Random) -> Generator[Example]:
    """Files of `fill`, in any encoding."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.py"

        def example(found: Any) -> None:
            encoding = chance.choice(("utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"))
            raw = torn(sentence(_MARKED, chance).encode(encoding, "replace"), chance)
            path.write_bytes(raw)
            found.attempt(lambda: read_text(str(path)), (BadInput,), raw)

        yield example


@contextmanager
def session_file(chance: random.Random) -> Generator[Example]:
    """JSON lines of `replay`."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"

        def example(found: Any) -> None:
            lines = mutated(_SESSION, chance)
            text = "\n".join(map(json.dumps, lines)) if isinstance(lines, list) else json.dumps(lines)
            raw = torn(text.encode(errors="replace"), chance)
            path.write_bytes(raw)
            found.attempt(lambda: read_session(path), (SessionError,), raw)

        yield example


@contextmanager
def safetensors_header(chance: random.Random) -> Generator[Example]:
    """Length, JSON, data."""
    header = {
        "__metadata__": {"format": "pt"},
        "a.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b.layers.0.weight": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"

        def example(found: Any) -> None:
            packed = torn(json.dumps(mutated(header, chance)).encode(errors="replace"), chance)
            length = len(packed) + chance.choice((0, 0, 0, 1, -1, 2**40))
            raw = torn(max(length, 0).to_bytes(8, "little") + packed + bytes(32), chance)
            path.write_bytes(raw)
            found.attempt(lambda: read_header(path), (ModelError,), raw)

        yield example


def _model_file(*names: str) -> Callable[[random.Random], Any]:
    """A target that changes one of the JSON files of a tiny model, then loads it and fills a gap with it."""

    @contextmanager
    def target(chance: random.Random) -> Generator[Example]:
        import torch

        from engine.fill.loading import load
        from tests.engine.models.masked.published import write_published
        from tests.engine.released import write_checkpoint

        # What a second thread of torch waits for a core would count as time of this one.
        torch.set_num_threads(1)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            good: dict[Path, dict[str, Any]] = {write_checkpoint(Path(folder) / "gemma"): _TOLD}
            for layout in ("dreamon", "llada", "open-dcoder"):
                good[write_published(Path(folder) / layout, layout)] = _TOLD_MASKED

            def example(found: Any) -> None:
                chosen = chance.choice(list(good))
                shutil.rmtree(path, ignore_errors=True)
                shutil.copytree(chosen, path, copy_function=shutil.copy)
                if told := chance.random() < 0.5:
                    (path / METADATA_FILE).write_text(json.dumps(good[chosen]))
                name = chance.choice([each for each in names if (path / each).exists()])
                raw = json.dumps(mutated(json.loads((path / name).read_text()), chance))
                (path / name).write_text(raw, errors="replace")
                work = lambda: load(str(path), "cpu").fill("x = ", "\n", deadline_ms=200, max_tokens=4)  # noqa: E731
                found.attempt(work, (EngineError,), f"{chosen.name} {told} {name} {raw}")

            # The first of each imports what the others find.
            for each in good:
                load(str(each), "cpu").fill("x = ", "\n", width=2)
            yield example

    return target


TARGETS: dict[str, Callable[[random.Random], Any]] = {
    "marked text": marked_text,
    "text file": text_file,
    "session": session_file,
    "safetensors": safetensors_header,
    "model config": _model_file("config.json", "generation_config.json", METADATA_FILE, INDEX_FILE),
    "tokenizer": _model_file("tokenizer.json", "tokenizer_config.json", "vocab.json", "added_tokens.json"),
}
