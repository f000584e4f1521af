"""A model that knows how a session goes on: its answers cost next to nothing, so that the rest of the way shows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dg_lsp.replay.session import Accept, Delete, Focus, Move, Open, Session, Type

REACH = 80
"""Tokens of a suggestion; with more of them the engine would have to cut what does not fit."""


@contextmanager
def oracle(session: Session) -> Generator[str]:
    """The name of such a model, for as long as the block lasts."""
    # The latest first: where old and new text share a gap's surroundings, the person is on the way to the new one.
    cases = [{"text": f"▮{text}▮", "reach": REACH} for text in reversed(settled_texts(session))]
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        path = Path(folder, "oracle.json")
        path.write_text(json.dumps({"cases": cases}), encoding="utf-8")
        yield f"oracle:{path}"


def settled_texts(session: Session) -> list[str]:
    """The texts of all documents whenever the person turned elsewhere: where a piece of work was done."""
    documents, path = dict[str, _Document](), ""
    settled = dict[str, None]()
    for event in session.events:
        if isinstance(event, Open | Focus):
            path = event.path
            if isinstance(event, Open):
                documents[path] = _Document(event.text, event.cursor)
        if isinstance(event, Open | Focus | Move):
            settled.update(dict.fromkeys(document.text for document in documents.values()))
        documents[path].follow(event)
    settled.update(dict.fromkeys(document.text for document in documents.values()))
    return [text for text in settled if "▮" not in text]


class _Document:
    def __init__(self, text: str, cursor: int) -> None:
        self.text = text
        self._cursor = cursor
        self._undo = list[tuple[str, int]]()

    def follow(self, event: object) -> None:
        match event:
            case Type() | Accept():
                self._become(self.text[: self._cursor] + event.text + self.text[self._cursor :], len(event.text))
            case Delete():
                count = min(event.count, self._cursor)
                self._become(self.text[: self._cursor - count] + self.text[self._cursor :], -count)
            case Move():
                self._cursor = event.cursor
            case Open() | Focus():
                pass
            case _ if self._undo:
                self.text, self._cursor = self._undo.pop()
            case _:
                pass

    def _become(self, text: str, moved: int) -> None:
        self._undo.append((self.text, self._cursor))
        self.text, self._cursor = text, self._cursor + moved
