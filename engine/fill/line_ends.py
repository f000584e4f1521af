"""Line ends, once for all work: models and checks see line feeds, answers get the ends of the text around them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import wraps
from itertools import accumulate
from typing import Concatenate, ParamSpec

from msgspec import UNSET
from msgspec.structs import replace

from engine.common.newlines import dominant_line_end, with_line_ends, with_line_feeds, with_old_line_ends
from engine.common.request import Candidate, FillRequest
from engine.fill.executor import Filling
from engine.models.base import Model

P = ParamSpec("P")


def in_line_feeds(
    work: Callable[Concatenate[Model, FillRequest, P], Filling],
) -> Callable[Concatenate[Model, FillRequest, P], Filling]:
    """Run work on texts with any line ends as if all were line feeds. Its drafts have line feeds."""

    @wraps(work)
    def converted(model: Model, request: FillRequest, *args: P.args, **more: P.kwargs) -> Filling:
        plain = with_line_feeds_alone(request)
        filling = work(model, plain, *args, **more)
        return filling if plain is request else _with_its_ends(request, filling)

    return converted


def _with_its_ends(request: FillRequest, filling: Filling) -> Filling:
    filled = yield from filling
    line_end = dominant_line_end(request.prefix + request.old + request.suffix)
    pairs = _pairs(request.prefix + request.suffix)
    return replace(filled, candidates=tuple(_ended(request, each, line_end, pairs) for each in filled.candidates))


def with_line_feeds_alone(request: FillRequest) -> FillRequest:
    """The request with line feeds in all of its texts, and offsets counted in these; itself where it has no others."""
    texts = [request.prefix, request.old, request.suffix, request.guess]
    texts += [each.text for each in (*request.snippets, *request.workspace_matches)]
    texts += [text for each in request.edits for text in (each.old, each.new)]
    if not any("\r" in text for text in texts):
        return request
    in_old, in_file = _pairs(request.old), _pairs(request.prefix + request.suffix)
    return replace(
        request,
        prefix=with_line_feeds(request.prefix),
        suffix=with_line_feeds(request.suffix),
        old=with_line_feeds(request.old),
        guess=with_line_feeds(request.guess),
        keep=tuple((_plain(start, in_old), _plain(end, in_old)) for start, end in request.keep),
        snippets=tuple(replace(each, text=with_line_feeds(each.text)) for each in request.snippets),
        workspace_matches=tuple(replace(each, text=with_line_feeds(each.text)) for each in request.workspace_matches),
        edits=tuple(
            replace(
                each,
                old=with_line_feeds(each.old),
                new=with_line_feeds(each.new),
                start=None if each.start is None else _plain(each.start, in_file),
            )
            for each in request.edits
        ),
    )


def _ended(request: FillRequest, candidate: Candidate, line_end: str, pairs: list[int]) -> Candidate:
    if request.task in ("rewrite", "fix"):
        return replace(candidate, text=with_old_line_ends(request.old, candidate.text, line_end))
    if candidate.replaces is not UNSET:
        start, end = (_original(at, pairs) for at in candidate.replaces)
        candidate = replace(candidate, replaces=(start, end))
    if line_end != "\r\n":
        return replace(candidate, text=with_line_ends(candidate.text, line_end))
    breaks = [0, *accumulate(letter == "\n" for letter in candidate.text)]
    ends = tuple(end + breaks[end] for end in candidate.token_ends)
    return replace(candidate, text=with_line_ends(candidate.text, line_end), token_ends=ends)


def _pairs(text: str) -> list[int]:
    """Offsets of line ends that are two characters long."""
    return [match.start() for match in re.finditer("\r\n", text)]


def _plain(offset: int, pairs: list[int]) -> int:
    """An offset of a text, in the text whose line ends are one character; from within a pair, the one after it."""
    return offset - bisect_left(pairs, offset - 1)


def _original(offset: int, pairs: list[int]) -> int:
    """The inverse of `_plain`."""
    return offset + bisect_left([at - before for before, at in enumerate(pairs)], offset)
