"""Finds brackets, strings and comments of a text, by one regular expression a language.

A fill is often half a statement, and a parser would have to guess; this sees what is open. It takes a millisecond for
20 kB and is right about ordinary code. What it can't know (heredocs, templates in templates) counts as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

from engine.syntax.languages import GRAMMARS

LexemeKind = Literal["open", "close", "string", "comment"]
PARTNER = {"(": ")", "[": "]", "{": "}"}
OPENER = {closer: opener for opener, closer in PARTNER.items()}


class Lexeme(NamedTuple):
    """A bracket, a string or a comment at `text[start:end]`."""

    kind: LexemeKind
    start: int
    end: int
    closer: str
    """The text that ends a string or comment; the partner of a bracket."""
    ended: bool = True
    """False for a string or comment that the end of the text cut off."""


CONTEXT_CHARS = 16
"""Characters before a text that decide how it begins."""


def lexemes(text: str, language: str, context: str = "") -> Iterator[Lexeme]:
    """The lexemes of a text in order; nothing for a language whose brackets need not pair. `context`: what stands
    before it; whether a slash begins a regular expression shows there."""
    pattern = _pattern(language)
    if pattern is None:
        return
    context = context[-CONTEXT_CHARS:]
    text, size = context + text, len(context)
    for match in pattern.finditer(text, size):
        start, end = match.start() - size, match.end() - size
        piece, name = match.group(), match.lastgroup or ""
        if name == "bracket":
            opens = piece in PARTNER
            yield Lexeme("open" if opens else "close", start, end, PARTNER.get(piece) or OPENER[piece])
        else:
            closer = _closer(piece, name)
            ended = _ends(piece, closer, name) if closer.strip() else match.end() < len(text)
            yield Lexeme("comment" if name.startswith("comment") else "string", start, end, closer, ended)


_LINE_END = r"(?=[\r\n])|\Z"
_ESCAPED = r"\\(?:.|\Z)"
"""A backslash, which may be the last character of a string so far."""
_PARTS = {
    "hash": r"(?P<comment_line>#[^\r\n]*+)",
    "hash_unless_attribute": r"(?P<comment_hash>#(?!\[)[^\r\n]*+)",
    "slashes": r"(?P<comment_line>//[^\r\n]*+)",
    "stars": r"(?P<comment_star>/\*.*?(?:\*/|\Z))",
    "dashes": r"(?P<comment_long>--\[(?P<level>=*)\[.*?(?:\](?P=level)\]|\Z))|(?P<comment_line>--[^\r\n]*+)",
    "long_brackets": r"(?P<string_long>\[(?P<depth>=*)\[.*?(?:\](?P=depth)\]|\Z))",
    "double": rf'(?P<string_double>"(?:{_ESCAPED}|[^"\\\r\n])*+(?:"|{_LINE_END}))',
    "single": rf"(?P<string_single>'(?:{_ESCAPED}|[^'\\\r\n])*+(?:'|{_LINE_END}))",
    "double_across": rf'(?P<string_double>"(?:{_ESCAPED}|[^"\\])*+(?:"|\Z))',
    "single_across": rf"(?P<string_single>'(?:{_ESCAPED}|[^'\\])*+(?:'|\Z))",
    "backtick": rf"(?P<string_backtick>`(?:{_ESCAPED}|[^`\\])*+(?:`|\Z))",
    "raw_backtick": r"(?P<string_backtick>`[^`]*+(?:`|\Z))",
    "triple_double": rf'(?P<string_triple_double>"""(?:{_ESCAPED}|[^\\])*?(?:"""|\Z))',
    "triple_single": rf"(?P<string_triple_single>'''(?:{_ESCAPED}|[^\\])*?(?:'''|\Z))",
    "verbatim": r'(?P<string_verbatim>(?<=@)"(?:""|[^"])*+(?:"|\Z))',
    "rust_raw": r'(?P<string_rust>\br(?P<hashes>#+)".*?(?:"(?P=hashes)|\Z))',
    "character": r"(?P<string_character>(?<!\w)'(?:\\[^\r\n]{1,9}?|[^\\'\r\n])')",
    "regex": (
        r"(?P<string_regex>(?:(?<=[=(,:\[!&|?{};])|(?<=[=(,:\[!&|?{};]\s)|(?<==>)|(?<==>\s)|(?<=return\s)"
        # An argument in a line of its own; a division has a blank on both sides.
        r"|(?<=\s\s)(?!/\s))"
        # Bounded: what looks like one and is none is read again from the next place that does.
        r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\r\n]){0,100}+\]|[^/\\\[\r\n]){1,1000}+/)"
    ),
}
"""The expressions by the names in `Grammar.lexes`."""
_VERBATIMS = frozenset(["comment_star", "comment_long", "string_long", "string_rust", "string_verbatim"])
_BRACKET = r"(?P<bracket>[()\[\]{}])"


@cache
def _pattern(language: str) -> re.Pattern[str] | None:
    grammar = GRAMMARS.get(language)
    parts = [_PARTS[name] for name in grammar.lexes.split()] if grammar else []
    return re.compile("|".join((*parts, _BRACKET)), re.DOTALL) if parts else None


def _ends(piece: str, closer: str, name: str) -> bool:
    inside = piece.removesuffix(closer)
    escaped = name not in _VERBATIMS and (len(inside) - len(inside.rstrip("\\"))) % 2 == 1
    return piece.endswith(closer) and len(piece) >= 2 * len(closer) and not escaped


def _closer(piece: str, name: str) -> str:
    """The end of a lexeme that begins like `piece`."""
    if name in ("comment_line", "comment_hash"):
        return "\n"
    if name == "comment_star":
        return "*/"
    if name in ("comment_long", "string_long"):
        return "]" + piece.lstrip("-")[1:].partition("[")[0] + "]"
    if name == "string_rust":
        return '"' + "#" * (len(piece[1:]) - len(piece[1:].lstrip("#")))
    return piece[:3] if name.startswith("string_triple") else piece[0]
