"""Suggestions as an editor would accept them: the language server's own suggester over the real engine's fills, whose
model is an oracle that answers with a given text."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from lsprotocol.types import TextDocumentItem

from dg_lsp.config.configuration import Configuration
from dg_lsp.documents.documents import Documents, Policy
from dg_lsp.documents.gap import gap_at
from dg_lsp.suggest.in_flight import Debounce, InFlight
from dg_lsp.suggest.suggester import INLINE, Suggester
from dg_lsp.workspace.context import ContextSelector
from dg_lsp.workspace.history import EditHistory
from dg_lsp.workspace.index import WorkspaceIndex
from engine.common.request import Filled, FillRequest
from engine.fill.pipeline import fill
from engine.models.oracle.model import Case, Oracle

SETTINGS = {"inline": {"max_tokens": 256, "deadline_ms": 60_000}}


class _Answering:
    """A resident engine whose model says one text, wherever it is asked."""

    is_ready = True
    deadline_ms = 60_000.0

    def __init__(self, answer: str) -> None:
        self.answer = answer

    async def fill(self, request: FillRequest, document: str) -> Filled:
        model = Oracle("oracle", [Case(text=f"{request.prefix}▮{self.answer}▮{request.suffix}")])
        model.info = replace(model.info, widths=(model.info.canvas_length // 2,))
        return fill(model, request)

    def warm(self) -> None: ...

    async def wait_until_ready(self) -> bool:
        return True


def suggester_of(documents: Documents, resident: Any, **more: Any) -> Suggester:
    """A suggester with siblings of its own, as a session has them."""
    siblings: dict[str, Any] = {
        "context": ContextSelector(documents, EditHistory(documents)),
        "index": WorkspaceIndex(documents),
        "in_flight": InFlight(resident, Debounce()),
    }
    return Suggester(documents=documents, resident=resident, **siblings | more)


def accepted(before: str, after: str, answer: str, language: str) -> str | None:
    """The document once the answer, asked for between two texts, is accepted; None where nothing is offered."""
    configuration = Configuration(pytest.fail)
    configuration.initialize(SETTINGS)
    settings = configuration.settings_of("")
    documents = Documents(policy=lambda uri, language: Policy(settings=settings, off="", may_show=True))
    uri = "file:///w/text"
    documents.open(TextDocumentItem(uri=uri, language_id=language, version=1, text=before + after))
    suggester = suggester_of(documents, _Answering(answer))
    snapshot = documents.get(uri)
    assert snapshot
    found = asyncio.run(suggester.suggest(gap_at(snapshot, len(before)), invoked=True, lane=INLINE))
    if not found:
        return None
    text = before + after
    return text[: found[0].cursor] + found[0].text + text[found[0].end :]
