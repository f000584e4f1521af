"""A model that knows how a session goes on: its answers cost next to nothing, so that the rest of the way shows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dg_lsp.replay.session import Accept, Delete, Focus, Move, Open, Session, Type

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
    documents, path = dict[str, _Document](), ""
    settled = dict[tuple[str, str], None]()
    for event in session.events:
        if isinstance(event, Open | Focus):
            path = event.path
            if isinstance(event, Open):
                documents[path] = _Document(event.text, event.language, event.cursor)
        if isinstance(event, Open | Focus | Move):
            settled.update(dict.fromkeys((document.text, document.language) for document in documents.values()))
        documents[path].follow(event)
    settled.update(dict.fromkeys((document.text, document.language) for document in documents.values()))
    return [(text, language) for text, language in settled if "▮" not in text]


class _Document:
    def __init__(self, text: str, language: str, cursor: int) -> None:
        self.text, self.language = text, language
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
