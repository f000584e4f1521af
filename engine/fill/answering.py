"""From any request to its answer: fill a gap, rewrite a text, fix broken syntax, answer messages."""

from __future__ import annotations

from engine.common.request import FillRequest
from engine.fill.executor import Filling
from engine.fill.next_edit import next_edit
from engine.fill.pieces import in_pieces
from engine.fill.pipeline import infill
from engine.fill.rewriting.answer import follows_instructions
from engine.fill.rewriting.chat import chat
from engine.fill.rewriting.instructed import instructed
from engine.fill.syntax_fix import syntax_fix
from engine.models.base import Model


def answering(model: Model, request: FillRequest) -> Filling:
    """Do what a request asks for, step by step: see engine.fill.executor.

    Raises BadInput at the first step for a request that contradicts itself.
    """
    match request.task:
        case "rewrite":
            return instructed(model, request) if follows_instructions(model) else in_pieces(model, request)
        case "fix":
            return syntax_fix(model, request)
        case "next":
            return next_edit(model, request)
        case "chat":
            return chat(model, request)
        case "fill":
            return infill(model, request)
