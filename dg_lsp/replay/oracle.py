"""A model that knows how a session goes on: its answers cost next to nothing, so that the rest of the way shows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dg_lsp.replay.editor import Editor
from dg_lsp.replay.session import Focus, Move, Open, Session

REACH = 120
"""Tokens of a suggestion; with more of them the engine would have to cut what does not fit."""
SETTINGS = {"inline": {"max_tokens": REACH + 8}}
"""The editor's, so that the engine lets it say that much."""


@contextmanager
def oracle(session: Session) -> Generator[str]:
    """The name of such a model, for as long as the block lasts."""
    # The latest first: where old and new text share a gap's surroundings, the person is on the way to the new one.
    cases = [
        {"text": f"▮{text}▮", "language": language, "reach": REACH}
        for text, language in reversed(settled_texts(session))
    ]
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        path = Path(folder, "oracle.json")
        path.write_text(json.dumps({"cases": cases}), encoding="utf-8")
        yield f"oracle:{path}"


def settled_texts(session: Session) -> list[tuple[str, str]]:
    """Texts of documents, each with its language, whenever the person turned elsewhere: a piece of work was done."""
    editor, settled = Editor(None, "utf-32"), dict[tuple[str, str], None]()
    last = len(session.events) - 1
    for at, event in enumerate(session.events):
        editor.do(event)
        if isinstance(event, Open | Focus | Move) or at == last:
            settled.update(dict.fromkeys((held.text, held.language) for held in editor.buffers.values()))
    return [(text, language) for text, language in settled if "▮" not in text]
