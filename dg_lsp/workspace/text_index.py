"""Where in many texts something stands between lines like these. Built for millions of lines in one light process:
texts are kept compressed, and an entry for a place takes four bytes.

Places are the starts of lines, found by the line before, as it is and with all names taken for one, and those behind an
opening or separating token, found by the last tokens before. They are ranked by hashes of the lines around them, which
collide now and then: what is found is a hint where to read. One thread may write while others look up: what an entry
refers to is there before it is.
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
"""In one index; a place has as many bits for its line."""
BLOCK_LINES = 96
"""Of text that is compressed, and read, as one."""
LINE_CHARS = 400
"""Of a line that count; nobody writes longer ones."""
KEY_TOKENS = 2
SAME_TOKENS = 2.0
"""What a place in a line is likelier where the tokens before it are the same, names included."""
BEFORE, AFTER = 4, 2
"""Lines around the gap that count."""
REACH_LINES = 16
"""How far behind a place the lines behind the gap are searched."""
CONSIDERED = 16
"""Places of one key that are ranked: of many, those nearest to the document's own."""
LISTED = 96
"""Places in a bucket that are looked through."""

OPENING = frozenset("([{,=:")
_SIGNATURE_BITS = 10
_TOKEN = re.compile(r"\w+|\S")
_NAME = "\0"
"""The shape of every name."""
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
"""Of many languages: what one may call a name and another may not is rarely told apart by more."""


@lru_cache(maxsize=1 << 14)
def _token_shape(token: str) -> str:
    """A name's is any other's."""
    is_word = token[:1].isalpha() or token[:1] == "_"
    return _NAME if is_word and token not in KEYWORDS else token


def is_name_token(token: str) -> bool:
    """Whether a token is a name that may be another in another place."""
    return _token_shape(token) is _NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a gap is: what a look-up compares. `head`: of the gap's line, what stands before it."""

    name: str
    """Of the document that it is in, whose end says what language it is in; texts of others are no precedents."""
    before: Sequence[str]
    """Lines before the gap's, the nearest first, none of them blank; as many as `BEFORE` count."""
    head: str
    after: Sequence[str]
    """Lines behind the gap's, none of them blank; as many as `AFTER` count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    """What an index is asked for: the same for all of them, so it is made once a look-up."""

    name: str
    keys: Sequence[tuple[int, float]]
    """Of places, each with what such a place is likelier."""
    before: Sequence[tuple[int, int]]
    """Hashes of the shape and the text of each line, as in `after`."""
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
    """A line, and the lines around it as they are, blank ones included."""

    name: str
    number: int
    """From 1."""
    before: str
    """Lines before it, each with its line break."""
    line: str
    after: str
    """Lines behind it, each with the line break before it."""


class TextIndex:
    """`bucket_bits`: of the table of places; each bucket of places takes memory of its own."""

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
        """Of texts that are gone; the places in them take memory until another index is made."""

    def __len__(self) -> int:
        return len(self._spans)

    def __contains__(self, name: str) -> bool:
        return name in self._spans

    @property
    def lines(self) -> int:
        return len(self._line_shapes)

    @property
    def nbytes(self) -> int:
        """What the arrays and texts take."""
        arrays = [self._line_shapes, self._line_texts, self._block_lines, self._block_numbers]
        # An array and a text of bytes have a head; arrays grow by an eighth at a time.
        places = 5 * self._places + 88 * len(self._buckets)
        return sum(len(each) * each.itemsize for each in arrays) + places + self._texts_nbytes + 56 * len(self._blocks)

    def names(self) -> list[str]:
        """Of all texts."""
        return list(self._spans)

    def text(self, name: str) -> str:
        """A text as it was added, but for its line breaks and spaces in blank lines. Raises KeyError."""
        first, end = self._spans[name][2:]
        blocks = [zlib.decompress(block).decode() for block in self._blocks[first:end] if block is not None]
        return "\n" * (self._block_numbers[first] - 1) + "\n".join(blocks)

    def add(self, name: str, text: str) -> bool:
        """Take a text in, in place of the one of that name; whether there was room for it."""
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
        # Each in one step, as another thread may be looking: behind each line there is one.
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
        """Forget a text; from now on nothing of it is found or kept."""
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
        """Lines that have a place like the gap's, each with how likely it is."""
        scores = dict[int, float]()
        for key, bonus in sought.keys:
            listed = self._listed(key, sought.name)
            self._like([line for line in listed if line not in scores], sought.before, sought.after, scores)
            if bonus:
                for line in listed:
                    scores[line] += bonus
        return [(score, line) for line, score in scores.items()]

    def place(self, line: int, reach: int = REACH_LINES) -> Place | None:
        """What stands at a line and around it, `reach` lines behind it; None where its text is gone."""
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
        """Lines with a place of that key, those nearest to the document's own if there are many."""
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
        """Add how like the gap's the lines around each line are to `scores`."""
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
    """Behind the last dot of a path; texts of one kind are in one language, and so are the cells of notebooks."""
    return name.partition("#")[0].rpartition("/")[2].rpartition(".")[2]


def last_place(head: str) -> int | None:
    """The offset of the last place inside a line's head, behind a token that opens something; None: there is none."""
    return next(reversed([found.end() for found in _TOKEN.finditer(head[:LINE_CHARS]) if found[0] in OPENING]), None)


def places_like(head: str, line: str) -> list[int]:
    """The offsets in a line of places inside it that are like the last one in a line's head."""
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
    """Where to begin to take so many of `size` around one of them."""
    return max(min(middle - count // 2, size - count), 0)


def _line_keys(kind: str, shape: Sequence[str], line: str) -> tuple[int, int]:
    """Of the place behind a line: by its text and by its shape."""
    return hash((kind, line.strip())), hash((kind, _NAME, shape))


def _inner_key(kind: str, tokens: Sequence[str], end: int) -> int:
    """Of the place behind so many tokens of a line, by the last of them."""
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


# One keystroke reads what the one before it read.
@lru_cache(maxsize=16)
def unpacked(data: bytes) -> tuple[list[str], list[int]]:
    """The lines of a block, and which of them are not blank."""
    lines = zlib.decompress(data).decode().split("\n")
    return lines, _filled(lines)


def _filled(lines: Sequence[str]) -> list[int]:
    """The numbers of lines that are not empty."""
    return [*compress(range(len(lines)), lines)]
