"""Gaps in prompts with markers of other models: `<|fim_prefix|>…<|fim_suffix|>…<|fim_middle|>` and the like."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.common.request import Snippet
from engine.models.prompts.markers import DIALECTS, Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The parts of a prompt."""

    prefix: str
    suffix: str
    snippets: tuple[Snippet, ...] = ()
    path: str = ""
    """The path of the file with the gap, if the prompt has it."""


_REPOSITORY = re.compile(rf"(?:{'|'.join(re.escape(mark) for each in DIALECTS for mark in each.repository)})[^\n<]*\n?")
_FILE = re.compile(rf"(?:{'|'.join(re.escape(mark) for each in DIALECTS for mark in each.files)})([^\n<]*)\n?")


def parsed(prompt: str) -> Parsed:
    """Prefix and suffix of a prompt, with other files as snippets. Without markers all of it is the prefix."""
    for dialect in DIALECTS:
        marks = [mark for mark in (dialect.prefix, dialect.suffix, dialect.middle) if mark]
        # The markers stand around code, which may speak of them itself: only the first of each counts.
        places = sorted((prompt.find(mark), mark) for mark in marks)
        if places[0][0] >= 0:
            return _between(prompt, dialect, places)
    snippets, path, rest = _files(prompt)
    return Parsed(prefix=rest, suffix="", snippets=snippets, path=path)


def _between(prompt: str, dialect: Dialect, places: list[tuple[int, str]]) -> Parsed:
    parts = {"": ""}
    for at, (start, mark) in enumerate(places):
        is_last = at + 1 == len(places)
        text = prompt[start + len(mark) : None if is_last else places[at + 1][0]]
        if dialect.spaced:
            # After the others there is one in some clients only, which is one too many where the line has ended.
            text = text.removeprefix(" ") if mark == dialect.prefix or text.startswith((" \n", " \r")) else text
            text = text if is_last else text.removesuffix(" ")
        parts[mark] = text
    snippets, path, rest = _files(prompt[: places[0][0]])
    if rest.strip():
        snippets = (*snippets, Snippet(path="context", text=rest))
    prefix = parts[dialect.prefix] + parts[dialect.middle]
    return Parsed(prefix=prefix, suffix=parts[dialect.suffix], snippets=snippets, path=path)


def _files(text: str) -> tuple[tuple[Snippet, ...], str, str]:
    """The files before the one with the gap, its path, and its text."""
    before, *named = _FILE.split(_REPOSITORY.sub("", text))
    if not named:
        return (), "", before
    paths, texts = [path.strip() for path in named[::2]], named[1::2]
    held = [("context", before), *zip(paths[:-1], texts[:-1], strict=True)]
    snippets = tuple(Snippet(path=path, text=held_text) for path, held_text in held if held_text.strip())
    return snippets, paths[-1], texts[-1]
