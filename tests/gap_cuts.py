"""Gaps cut anywhere into real text: tokens, halves of tokens, lines, several lines; and those after which an editor has
closed the bracket before."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_CLOSER = {"(": ")", "[": "]", "{": "}", "<": ">", '"': '"', "'": "'", "`": "`"}
_LONGEST = 240
_LINES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """`before + truth + after` is a file."""

    before: str
    truth: str
    after: str
    closed: str = ""
    """What the editor put after the cursor by itself."""

    @property
    def file(self) -> str:
        return self.before + self.truth + self.after

    @property
    def document(self) -> str:
        """What stands in the editor."""
        return self.before + self.closed + self.after

    @property
    def is_of_one_line(self) -> bool:
        """Whether the truth has several lines where one is wanted, as more stands in the gap's line."""
        return "\n" in self.truth and bool((self.closed + self.after).partition("\n")[0].strip())


def cuts(text: str, seed: int, count: int) -> Iterator[Cut]:
    """`count` gaps of a text, each kind as often."""
    dice = random.Random(seed)
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    lines = [match.span() for match in re.finditer(r"[^\n]+", text) if not match.group().isspace()]
    kinds = [_token, _half_token, _tokens, _any, _line, _several_lines, _rest_of_line]
    made = 0
    while made < count:
        start, end = kinds[made % len(kinds)](dice, text, tokens, lines)
        if 0 < end - start <= _LONGEST and text[start:end].strip():
            yield Cut(before=text[:start], truth=text[start:end], after=text[end:])
            made += 1


def closed_cuts(text: str, pairs: list[tuple[int, int]], seed: int, count: int) -> Iterator[Cut]:
    """Gaps right after an opening bracket or quote that go on to its closer or beyond it, in its line. `pairs`: where
    openers and their closers stand."""
    dice = random.Random(seed)
    near = [pair for pair in pairs if "\n" not in text[slice(*pair)]]
    for _ in range(count if near else 0):
        opener, closer = dice.choice(near)
        line_end = text.find("\n", closer) % (len(text) + 1)
        end = dice.choice([closer + 1, dice.randint(closer + 1, line_end), line_end])
        before, truth, after = text[: opener + 1], text[opener + 1 : end], text[end:]
        if len(truth) <= _LONGEST:
            yield Cut(before=before, truth=truth, after=after, closed=_CLOSER[text[opener]])


def _token(dice, text, tokens, lines):
    return dice.choice(tokens)


def _half_token(dice, text, tokens, lines):
    start, end = dice.choice(tokens)
    at = dice.randint(start, end)
    return dice.choice([(start, at), (at, end)])


def _tokens(dice, text, tokens, lines):
    first = dice.randrange(len(tokens))
    last = min(len(tokens) - 1, first + dice.randint(1, 12))
    return tokens[first][0], tokens[last][1]


def _any(dice, text, tokens, lines):
    start = dice.randrange(len(text))
    return start, min(len(text), start + dice.randint(1, 60))


def _line(dice, text, tokens, lines):
    start, end = dice.choice(lines)
    return start + dice.choice([0, len(text[start:end]) - len(text[start:end].lstrip())]), end


def _several_lines(dice, text, tokens, lines):
    first = dice.randrange(len(lines))
    last = min(len(lines) - 1, first + dice.randint(1, _LINES - 1))
    start, end = lines[first][0], lines[last][1]
    return start + dice.choice([0, len(text[start:end]) - len(text[start:end].lstrip())]), end + dice.choice([0, 1])


def _rest_of_line(dice, text, tokens, lines):
    start, end = dice.choice(lines)
    return dice.randint(start, end), end
