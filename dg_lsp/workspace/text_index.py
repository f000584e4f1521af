"""An index of places in many texts, by the lines around them. Made for millions of lines in a small process: texts are
compressed, and an entry takes four bytes.

Places are the starts of lines, found by the line before, literally and with all names replaced by one; and positions
after an opening or separating token, found by the last tokens before. They are ranked by hashes of the lines around
them. Hashes may collide, so a result is a hint where to read. One thread may write while others read: an entry is
written after what it refers to.
"""

from __future__ import annotations

import re
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

MAX_LINES = 1 << 22
"""Limit of one index: an entry has 22 bits for its line."""
BLOCK_LINES = 96
"""Lines of a block, which is compressed and read as one."""
LINE_CHARS = 400
"""Characters of a line that count."""
KEY_TOKENS = 2
SAME_TOKENS = 2.0
"""Score of a place inside a line with the same tokens before it, names included."""
BEFORE, AFTER = 4, 2
"""Lines before and after the gap that count."""
REACH_LINES = 16
"""How far after a place the lines after the gap are searched."""
CONSIDERED = 16
"""Places of one key that are ranked, those nearest to the document's own."""
LISTED = 96
"""Places of a bucket that are read."""

OPENING = frozenset("([{,=:")
_SIGNATURE_BITS = 10
_TOKEN = re.compile(r"\w+|\S")
_NAME = "\0"
"""Stands for every name in a shape."""
KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        and as assert async await break case catch class cls const continue def default defer del do elif else enum
        except export extends false False final finally fn for from func function global go if impl implements import
        in include interface is lambda let loop match mod module mut new nil None not null or package pass private
        protected pub public raise return self static struct super switch then this throw trait True true try type
        typedef undefined union unless until use using var void when where while with yield
        """,
    )
)
"""Keywords of many languages together; telling languages apart would rarely help."""


@lru_cache(maxsize=1 << 14)
def _token_shape(token: str) -> str:
    """The token itself, or one symbol for all names."""
    is_word = token[:1].isalpha() or token[:1] == "_"
    return _NAME if is_word and token not in KEYWORDS else token


def is_name_token(token: str) -> bool:
    """Whether a token is a name, which may differ in another place."""
    return _token_shape(token) is _NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The lines around a gap, which a look-up compares. `head`: the text before the gap on its line."""

    name: str
    """The gap's document. Only texts with the same ending are searched."""
    before: Sequence[str]
    """Lines before the gap's, the nearest first, without blank ones; `BEFORE` of them count."""
    head: str
    after: Sequence[str]
    """Lines after the gap's, without blank ones; `AFTER` of them count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    """A query, made once for all indexes."""

    name: str
    keys: Sequence[tuple[int, float]]
    """Keys of places, each with the score that it adds."""
    before: Sequence[tuple[int, int]]
    """Hashes of each line's shape and text; `after` likewise."""
    after: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, around: Surroundings) -> IndexQuery:
        kind = kind_of(around.name)
        above = around.before[0] if around.before else ""
        keys = [(key, 0.0) for key in _line_keys(kind, _shaped(above), above)]
        tokens = _TOKEN.findall(around.head[:LINE_CHARS])
        if inside := _places_in(tokens):
            keys.append((_inner_key(kind, tokens, inside[-1]), SAME_TOKENS))
        return cls(
            name=around.name, keys=keys, before=_hashed(around.before[:BEFORE]), after=_hashed(around.after[:AFTER])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line with the lines around it, blank ones included."""

    name: str
    number: int
    """From 1."""
    before: str
    """The lines before it, each with its line break."""
    line: str
    after: str
    """The lines after it, each with the line break before it."""


class TextIndex:
    """The index. `bucket_bits`: size of the table of places; each bucket takes some memory."""

    def __init__(self, *, bucket_bits: int = 16) -> None:
        self._buckets: list[array[int] | None] = [None] * (1 << bucket_bits)
        self._mask = (1 << bucket_bits) - 1
        # A line each, 0 between texts.
        self._line_shapes = array("H", [0])
        self._line_texts = array("H", [0])
        # A block each.
        self._block_lines = array("I")
        self._block_numbers = array("I")
        self._blocks: list[bytes | None] = []
        self._block_names: list[str] = []
        # First and last line, first and last block.
        self._spans: dict[str, tuple[int, int, int, int]] = {}
        self._places = 0
        self._texts_nbytes = 0
        self.dead_lines = 0
        """Lines of removed texts; their entries take memory until the index is rebuilt."""

    def __len__(self) -> int:
        return len(self._spans)

    def __contains__(self, name: str) -> bool:
        return name in self._spans

    @property
    def lines(self) -> int:
        return len(self._line_shapes)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays and texts."""
        arrays = [self._line_shapes, self._line_texts, self._block_lines, self._block_numbers]
        # An array and a text of bytes have a head; arrays grow by an eighth at a time.
        places = 5 * self._places + 88 * len(self._buckets)
        return sum(len(each) * each.itemsize for each in arrays) + places + self._texts_nbytes + 56 * len(self._blocks)

    def names(self) -> list[str]:
        """The names of all texts."""
        return list(self._spans)

    def text(self, name: str) -> str:
        """A text as it was added, with LF line breaks and without spaces in blank lines. Raises KeyError."""
        first, end = self._spans[name][2:]
        blocks = [zlib.decompress(block).decode() for block in self._blocks[first:end] if block is not None]
        return "\n" * (self._block_numbers[first] - 1) + "\n".join(blocks)

    def add(self, name: str, text: str) -> bool:
        """Add or replace a text; return whether it fitted."""
        self.remove(name)
        lines = ["" if line.isspace() else line for line in text.split("\n")]
        numbers = _filled(lines)
        if not numbers or self.lines + len(numbers) + 1 > MAX_LINES:
            return not numbers
        first, first_block = self.lines, len(self._blocks)
        for start in range(0, len(numbers), BLOCK_LINES):
            end = numbers[start + BLOCK_LINES] if start + BLOCK_LINES < len(numbers) else len(lines)
            block = zlib.compress("\n".join(lines[numbers[start] : end]).encode())
            self._texts_nbytes += len(block)
            self._blocks.append(block)
            self._block_names.append(name)
            self._block_numbers.append(numbers[start] + 1)
            self._block_lines.append(first + start)
        tokenized = [_TOKEN.findall(lines[number][:LINE_CHARS]) for number in numbers]
        shaped = [_shape(tokens) for tokens in tokenized]
        # Each in one step, as another thread may be reading: after each line there must be one.
        self._line_texts.extend([*(_short_hash(lines[number].strip()) for number in numbers), 0])
        self._line_shapes.extend([*map(_short_hash, shaped), 0])
        self._spans[name] = first, self.lines - 1, first_block, len(self._blocks)
        kind, before, line_before = kind_of(name), (), ""
        for line, (shape, tokens, number) in enumerate(zip(shaped, tokenized, numbers, strict=True), first):
            for key in _line_keys(kind, before, line_before):
                self._put(key, line)
            for end in _places_in(tokens):
                self._put(_inner_key(kind, tokens, end), line)
            before, line_before = shape, lines[number]
        return True

    def remove(self, name: str) -> None:
        """Remove a text."""
        first, end, first_block, end_block = self._spans.pop(name, (0, 0, 0, 0))
        if first == end:
            return
        for block in range(first_block, end_block):
            self._texts_nbytes -= len(self._blocks[block] or b"")
            self._blocks[block] = None
        zeros = array("H", bytes(2 * (end - first)))
        self._line_shapes[first:end] = zeros
        self._line_texts[first:end] = zeros
        self.dead_lines += end - first

    def nearest(self, sought: IndexQuery) -> list[tuple[float, int]]:
        """Lines with a place like the gap's, each with its score."""
        scores = dict[int, float]()
        for key, bonus in sought.keys:
            listed = self._listed(key, sought.name)
            self._like([line for line in listed if line not in scores], sought.before, sought.after, scores)
            if bonus:
                for line in listed:
                    scores[line] += bonus
        return [(score, line) for line, score in scores.items()]

    def place(self, line: int, reach: int = REACH_LINES) -> Place | None:
        """A line and the lines around it, up to `reach` lines after it; None where its text was removed."""
        block = bisect_right(self._block_lines, line) - 1
        found = self._block(block)
        if found is None:
            return None
        lines, numbers = found
        at = line - self._block_lines[block]
        name, number = self._block_names[block], self._block_numbers[block]
        here = numbers[at]
        before, after = lines[max(here - 2 * BEFORE, 0) : here], lines[here + 1 : here + 1 + reach]
        if at < BEFORE and (earlier := self._block(block - 1)) and self._block_names[block - 1] == name:
            before = [*earlier[0][-BEFORE:], *before]
        if len(after) < reach and (later := self._block(block + 1)) and self._block_names[block + 1] == name:
            after = [*after, *later[0][: reach - len(after)]]
        return Place(
            name=name,
            number=number + here,
            before="".join(f"{each}\n" for each in before),
            line=lines[here],
            after="".join(f"\n{each}" for each in after),
        )

    def _put(self, key: int, line: int) -> None:
        bucket = self._buckets[key & self._mask]
        if bucket is None:
            bucket = self._buckets[key & self._mask] = array("I")
        bucket.append(line << _SIGNATURE_BITS | _signature(key))
        self._places += 1

    def _listed(self, key: int, name: str) -> Sequence[int]:
        """Lines with a place of this key, those nearest to the document's own."""
        bucket = self._buckets[key & self._mask]
        if bucket is None:
            return ()
        shapes, signature, bits, low = self._line_shapes, _signature(key), _SIGNATURE_BITS, (1 << _SIGNATURE_BITS) - 1
        own = self._spans.get(name, (MAX_LINES - 1,))[0]
        start = _around(bisect_left(bucket, own << bits), len(bucket), LISTED)
        found = [
            each >> bits for each in bucket[start : start + LISTED] if each & low == signature and shapes[each >> bits]
        ]
        start = _around(bisect_left(found, own), len(found), CONSIDERED)
        return found[start : start + CONSIDERED]

    def _like(
        self,
        lines: Sequence[int],
        before: Sequence[tuple[int, int]],
        after: Sequence[tuple[int, int]],
        scores: dict[int, float],
    ) -> None:
        """Add each line's score, by the lines around it, to `scores`."""
        shapes, texts, index = self._line_shapes, self._line_texts, self._line_shapes.index
        next_shape, next_text = after[0] if after else (0, 0)
        second_shape = after[1][0] if len(after) > 1 else 0
        for line in lines:
            score, at = 0.0, line
            for shape, text in before:
                at -= 1
                if shapes[at] != shape:
                    break
                score += 2.0 if texts[at] == text else 1.0
            if after:
                try:
                    found = index(next_shape, line + 1, line + 1 + REACH_LINES)
                except ValueError:
                    pass
                else:
                    score += (3.0 if texts[found] == next_text else 2.0) - 0.05 * (found - line - 1)
                    if second_shape and shapes[found + 1] == second_shape:
                        score += 1.0
            scores[line] = score

    def _block(self, block: int) -> tuple[list[str], list[int]] | None:
        data = self._blocks[block] if 0 <= block < len(self._blocks) else None
        return None if data is None else unpacked(data)


def kind_of(name: str) -> str:
    """The ending of a path, which stands for its language; also of a notebook's cell."""
    return name.partition("#")[0].rpartition("/")[2].rpartition(".")[2]


def last_place(head: str) -> int | None:
    """The offset of the last place inside a line's head, after an opening token; None: there is none."""
    return next(reversed([found.end() for found in _TOKEN.finditer(head[:LINE_CHARS]) if found[0] in OPENING]), None)


def places_like(head: str, line: str) -> list[int]:
    """The offsets of places in `line` that are like the last place in `head`."""
    wanted = _TOKEN.findall(head[:LINE_CHARS])
    end = _places_in(wanted)[-1]
    wanted = wanted[max(end - KEY_TOKENS, 0) : end]
    matches = [*_TOKEN.finditer(line[:LINE_CHARS])]
    tokens = [found.group() for found in matches]
    same = (end for end in _places_in(tokens) if tokens[max(end - KEY_TOKENS, 0) : end] == wanted)
    return [matches[end - 1].end() for end in same]


def _places_in(tokens: Sequence[str]) -> list[int]:
    return [end for end, token in enumerate(tokens, 1) if token in OPENING]


def _around(middle: int, size: int, count: int) -> int:
    """The start of a window of `count` items out of `size` around `middle`."""
    return max(min(middle - count // 2, size - count), 0)


def _line_keys(kind: str, shape: Sequence[str], line: str) -> tuple[int, int]:
    """The keys of the place after a line: by its text and by its shape."""
    return hash((kind, line.strip())), hash((kind, _NAME, shape))


def _inner_key(kind: str, tokens: Sequence[str], end: int) -> int:
    """The key of the place after `end` tokens of a line, by the last ones."""
    return hash((kind, 1, *tokens[max(end - KEY_TOKENS, 0) : end]))


def _hashed(lines: Sequence[str]) -> list[tuple[int, int]]:
    return [(_short_hash(_shaped(line)), _short_hash(line.strip())) for line in lines]


def _shaped(line: str) -> tuple[str, ...]:
    return _shape(_TOKEN.findall(line[:LINE_CHARS]))


def _shape(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_token_shape, tokens))


def _short_hash(value: object) -> int:
    return hash(value) & 0xFFFF or 1


def _signature(key: int) -> int:
    return key >> 40 & ((1 << _SIGNATURE_BITS) - 1)


# A key reads mostly what the previous one has read.
@lru_cache(maxsize=16)
def unpacked(data: bytes) -> tuple[list[str], list[int]]:
    """The lines of a block, and which of them are not blank."""
    lines = zlib.decompress(data).decode().split("\n")
    return lines, _filled(lines)


def _filled(lines: Sequence[str]) -> list[int]:
    """The numbers of lines that are not empty."""
    return [*compress(range(len(lines)), lines)]
