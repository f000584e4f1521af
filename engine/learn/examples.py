"""One text as an example: a context laid out as in serving, the gap at its end, and gaps inside it.

A text is a window of a document, or a function from its first line on. Most have a gap: then the context has the text
after the gap first and the prefix last, and the gap follows with a token that ends it.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.lab.eval.holes import Hole, Kind, holes
from engine.learn.packed import PackedCorpus
from engine.learn.tokenizer import encode
from engine.learn.training_recipe import Recipe
from engine.models.prompts.layout import EDIT_TOKENS, EOS, context_ids

_OFTEN: dict[Kind, int] = {
    "rest_of_line": 4,
    "line": 3,
    "lines": 1,
    "whole_lines": 5,
    "block": 1,
    "arguments": 2,
    "span": 2,
}
KINDS: tuple[Kind, ...] = tuple(kind for kind, times in _OFTEN.items() for _ in range(times))
"""Kinds of gaps, each repeated as often as it is drawn relative to the others."""
SIGNATURES = 0.75
"""Share of contexts with signatures instead of parts of neighbouring files, where a name in the text has one."""
ALONE, IMPORTS = 0.5, 0.3
"""Shares of functions after which the file ends, and of those with some of the file's imports before them."""
LATE = 0.75
"""Share of gaps in the second half of a text that takes a whole row. Most files are longer than what is read of
them."""
IN_CODE = 0.75
"""Share of a function's gaps that begin after its docstring."""
SHORTEST = 48
"""Least number of tokens of an example; a smaller rest of a row stays empty."""
LONGEST_GAP = 64
CHARACTERS = 4
"""Most characters that are looked at for each token."""
_REACH, _SUFFIX_SHARE, _SNIPPET_SHARE = 0.8, 0.4, 0.35
"""Largest shares of an example's tokens: for the gap and what precedes it, for what follows it, for other files."""
_NAME = re.compile(r"[^\W\d]\w{2,}")
_DOCSTRING = re.compile(r'"""[\s\S]*?"""\n?|\'\'\'[\s\S]*?\'\'\'\n?|/\*\*[\s\S]*?\*/\n?')
_IMPORT = re.compile(r"^(?:import|from) [^\n(\\]+$", re.MULTILINE)
_DEFINED = re.compile(r"^(?:async +)?(?:def|class) +(\w+)[^\n]*\n(?:[ \t)][^\n]*\n|\n)*", re.MULTILINE)
"""A definition at the top level of a file, to its end."""
_SIGNATURE = re.compile(r"(?:[^\n]*\n){0,12}?[^\n]*:(?=[ \t]*\n)")
_MEMBER = re.compile(r"^    (?:async +)?def (?:__init__|[^\W_]\w*)\([^\n]*:$", re.MULTILINE)
MEMBERS = 8
"""Most members of a class whose signature is shown."""
Edit = tuple[list[int], list[int]]
"""Old and new text of a recent edit, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """A gap inside a context. It sees the first `cut` tokens; `after` is the text that follows it."""

    cut: int
    gap: list[int]
    after: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One text in tokens."""

    context: list[int]
    gap: list[int] | None
    """What follows the context, without the token that ends a gap; None: the text goes on without a gap."""
    after: list[int]
    """What follows the gap."""
    inner: list[Inner]


class Examples:
    def __init__(self, corpus: PackedCorpus, recipe: Recipe, rng: random.Random, best: bool = False) -> None:
        """`best`: whether documents with a large weight are preferred."""
        self._corpus, self._recipe, self._rng, self._best = corpus, recipe, rng, best
        self._ahead = recipe.shape.canvas if recipe.free_share else recipe.pinned
        self.read = recipe.pinned if recipe.repeated else None
        """The argument `pinned` of `ContextRow`."""

    def size(self, room: int) -> int:
        """A random size in tokens for the next example of a row that has `room` tokens left."""
        size = room if self._recipe.whole_rows else self._rng.randint(min(room, 2 * SHORTEST), room)
        return room if room - size < SHORTEST else size

    def draw(self, room: int, inner: int) -> Example | None:
        """An example of at most `room` tokens with up to `inner` gaps inside; None where the draw failed."""
        rng = self._rng
        document, text, ends, body = self._text(room)
        gap = self._gap(text, body, document, room) if rng.random() < self._recipe.gap_share else None
        snippets, edits = self._extra(document, text, gap, int(room * _SNIPPET_SHARE))
        room -= 4 + sum(1 + len(ids) for ids in snippets) + sum(2 + len(a) + len(b) for a, b in edits)
        suffix: list[int] = []
        middle: list[int] = []
        if gap is not None:
            middle = self._encode(text[gap.start : gap.end])
            # Beside its text, what stands after it and three more tokens are read: see `layout.question`.
            room -= len(middle) + (self.read or 0) + 3
            if not 0 < len(middle) <= LONGEST_GAP or room < SHORTEST // 2:
                return None
            share = rng.randint(8, max(8, int(room * _SUFFIX_SHARE)))
            suffix = self._head(text[gap.end :], share, ends)
            room -= len(suffix)
        before = text[: gap.start] if gap else text
        start = self._start(before, room) if gap else 0
        window = before[start : start + room * CHARACTERS]
        found = self._inner(window, self._corpus.language(document), inner)
        encoding = self._corpus.tokenizer.encode(window, add_special_tokens=False)
        # In characters, where the first token begins and where each one ends.
        pieces, ends_at = encoding.ids, [0, *(end for _, end in encoding.offsets)]
        # After a gap that follows, the prefix must be whole at its end.
        lost = max(0, len(pieces) - room) if gap else 0
        prefix = pieces[lost : lost + room]
        if gap is None and ends and len(window) == len(text) and len(pieces) < room:
            prefix = [*prefix, EOS]
        if len(prefix) < 4:
            return None
        later = suffix if self._recipe.repeated else suffix[self._recipe.pinned :]
        context = context_ids(self._corpus.language(document), later, prefix, snippets, edits)
        ahead = len(context) - len(prefix)
        return Example(
            context=context,
            gap=middle if gap else None,
            after=suffix[: self._ahead],
            inner=[
                made
                for hole in found
                # Whoever asks inside a token has it cut there; after it, these would be other tokens.
                if ends_at[cut := bisect_right(ends_at, hole.start) - 1] == hole.start
                and 0 <= cut - lost <= min(room, len(prefix))
                and (made := self._made(text, start, hole, ahead + cut - lost, ends))
            ],
        )

    def _text(self, room: int) -> tuple[int, str, bool, int]:
        """Draw (document, text, whether the text ends with the file, where in it the code after a docstring begins)."""
        rng, corpus = self._rng, self._corpus
        if rng.random() < self._recipe.function_share and (place := corpus.choose_function(rng, self._best)):
            document, start, end = place
            whole = corpus.text(document)
            alone = rng.random() < ALONE
            text = whole[start:end] + "\n" if alone else whole[start : end + room * CHARACTERS]
            indent = text[: len(text) - len(text.lstrip(" \t"))]
            if alone and indent:
                text = text.replace("\n" + indent, "\n").removeprefix(indent)
            if rng.random() < IMPORTS and (imports := _IMPORT.findall(whole)):
                chosen = sorted(rng.sample(range(len(imports)), min(len(imports), rng.randint(1, 3))))
                text = "\n".join(imports[at] for at in chosen) + "\n\n\n" + text
            docstring = _DOCSTRING.search(text)
            return document, text, alone, docstring.end() if docstring else 0
        document = corpus.choose(rng, self._best)
        whole = corpus.text(document)
        size = 2 * room * CHARACTERS
        start = rng.randrange(max(1, len(whole) - size // 4)) if rng.random() < 0.7 else 0
        if start and rng.random() < 0.8:
            start = whole.find("\n", start) + 1
        return document, whole[start : start + size], start + size >= len(whole), 0

    def _gap(self, text: str, body: int, document: int, room: int) -> Hole | None:
        first = body if self._rng.random() < IN_CODE else 0
        size = int(room * CHARACTERS * _REACH)
        if self._recipe.whole_rows and len(text) > size and self._rng.random() < LATE:
            first, size = max(first, size // 2), size // 2
        reach = text[first : first + size]
        if self._rng.random() < self._recipe.span_share:
            found = self._span(reach)
        else:
            drawn = holes(reach, self._corpus.language(document), self._rng, KINDS, count=1, longest=LONGEST_GAP * 4)
            found = drawn[0] if drawn else None
        return found and replace(found, start=first + found.start, end=first + found.end)

    def _span(self, text: str) -> Hole | None:
        """A gap between any two tokens; short ones are as frequent as long ones."""
        ends = [end for _, end in self._corpus.tokenizer.encode(text, add_special_tokens=False).offsets]
        size = self._rng.randint(1, LONGEST_GAP * 2 // 3)
        if len(ends) <= size + 1:
            return None
        first = self._rng.randrange(len(ends) - size)
        return Hole(kind="span", start=ends[first], end=ends[first + size])

    def _inner(self, window: str, language: str, count: int) -> list[Hole]:
        """Gaps that begin inside the window, in order, at most one at a place."""
        if not count:
            return []
        spans = sum(self._rng.random() < self._recipe.span_share for _ in range(count))
        drawn = [self._span(window) for _ in range(spans)]
        found = holes(window, language, self._rng, KINDS, count=count - spans, longest=LONGEST_GAP * 4)
        places = {hole.start: hole for hole in (*drawn, *found) if hole is not None}
        return [places[at] for at in sorted(places)]

    def _made(self, text: str, start: int, hole: Hole, cut: int, ends: bool) -> Inner | None:
        gap = self._encode(text[start + hole.start : start + hole.end])
        if not 0 < len(gap) <= LONGEST_GAP:
            return None
        return Inner(cut=cut, gap=gap, after=self._head(text[start + hole.end :], self._ahead, ends))

    def _head(self, text: str, tokens: int, ends: bool) -> list[int]:
        """The first tokens of a text, where it ends within them followed by the token that says so."""
        head = text[: tokens * 3 * CHARACTERS]
        ids = self._encode(head)
        return [*ids, EOS] if ends and len(head) == len(text) and len(ids) < tokens else ids[:tokens]

    def _start(self, before: str, room: int) -> int:
        """Where the prefix begins: at a line, unless all of it fits."""
        start = max(0, len(before) - room * CHARACTERS)
        line = before.find("\n", start, start + len(before) // 4) if start else -1
        return line + 1 if line >= 0 else start

    def _extra(self, document: int, text: str, gap: Hole | None, room: int) -> tuple[list[list[int]], list[Edit]]:
        rng = self._rng
        snippets, edits = list[list[int]](), list[Edit]()
        if room >= SHORTEST and self._recipe.echo_share and rng.random() < self._recipe.echo_share:
            snippets = [self._echo(document, text, gap, room)]
            room -= len(snippets[0])
        elif room >= SHORTEST and rng.random() < self._recipe.snippet_share:
            snippets = self._snippets(document, text, room)
            room -= sum(map(len, snippets))
        if gap and room >= EDIT_TOKENS and rng.random() < self._recipe.edit_share:
            edits = self._edits(document, text, gap, max(1, room // (2 * EDIT_TOKENS)))
        return snippets, edits

    def _snippets(self, document: int, text: str, room: int) -> list[list[int]]:
        rng = self._rng
        if rng.random() < SIGNATURES and (said := signatures(self._corpus, document, text, room * CHARACTERS, rng)):
            return [self._encode(said)[:room]]
        best = related_parts(self._corpus, document, text, room * CHARACTERS, rng)[: rng.randint(1, 2)]
        each = room // max(1, len(best))
        return [ids for part, _ in best if (ids := self._encode(part)[: rng.randint(each // 2, each)])]

    def _echo(self, document: int, text: str, gap: Hole | None, room: int) -> list[int]:
        """The text around the gap and in it, as if it stood in another file, often with a few names replaced."""
        rng = self._rng
        start, end = (gap.start, gap.end) if gap else (rng.randrange(min(len(text), room * CHARACTERS)),) * 2
        around = max(0, room * CHARACTERS // 2 - (end - start))
        ahead = rng.randint(around // 4, around)
        start = text.rfind("\n", 0, max(0, start - ahead)) + 1
        part = text[start : end + around - ahead]
        names = sorted(set(_NAME.findall(part)))
        others = sorted(set(_NAME.findall(self._corpus.text(document)[:20_000])))
        for name in rng.sample(names, min(len(names), rng.randint(0, 3))):
            part = re.sub(rf"\b{re.escape(name)}\b", rng.choice(others), part)
        return self._encode(part)[:room]

    def _edits(self, document: int, text: str, gap: Hole, count: int) -> list[Edit]:
        """Lines of the file that share a name with the gap, as if they had just been written or renamed."""
        rng, whole = self._rng, self._corpus.text(document)
        names = set(_NAME.findall(text[gap.start : gap.end]))
        # The text may be indented less than it is in the file.
        seen = {line.strip() for line in text.split("\n")}
        lines = [line for line in whole.split("\n") if line.strip() not in seen and names & set(_NAME.findall(line))]
        others = sorted(set(_NAME.findall(whole[:20_000])))
        edits: list[Edit] = []
        for line in rng.sample(lines, min(count, len(lines))):
            name = rng.choice(sorted(names & set(_NAME.findall(line))))
            old = re.sub(rf"\b{re.escape(name)}\b", rng.choice(others), line) if rng.random() < 0.7 else ""
            ids = self._encode(old), self._encode(line)
            if all(len(each) <= EDIT_TOKENS for each in ids):
                edits.append(ids)
        return edits

    def _encode(self, text: str) -> list[int]:
        return encode(self._corpus.tokenizer, text)


def related_parts(
    corpus: PackedCorpus, document: int, text: str, characters: int, rng: random.Random
) -> list[tuple[str, int]]:
    """A few parts of neighbouring files with their documents; those that share most names with the text come first."""
    names, near = set(_NAME.findall(text)), corpus.neighbours(document)
    parts: list[tuple[int, str, int]] = []
    for other in rng.sample(near, min(3, len(near))):
        whole = corpus.text(other)
        for _ in range(3):
            start = whole.find("\n", rng.randrange(len(whole))) + 1
            part = whole[start : start + characters]
            parts.append((len(names & set(_NAME.findall(part))), part, other))
    return [(part, other) for _, part, other in sorted(parts, reverse=True)]


def signatures(corpus: PackedCorpus, document: int, text: str, characters: int, rng: random.Random) -> str:
    """Signatures that neighbouring files define: those of names in the text, and of one more for each."""
    names, used, others = set(_NAME.findall(text)), dict[str, str](), dict[str, str]()
    near = corpus.neighbours(document) if corpus.language(document) == "python" else []
    for other in near:
        for found in _DEFINED.finditer(corpus.text(other)):
            if signature := _SIGNATURE.match(found[0]):
                members = _MEMBER.findall(found[0])[:MEMBERS] if found[0].startswith("class") else []
                (used if found[1] in names else others).setdefault(found[1], _joined(signature[0], members))
    few = rng.sample(sorted(others), min(len(others), len(used)))
    told = [*used.values(), *(others[name] for name in few)]
    rng.shuffle(told)
    kept: list[str] = []
    for each in told:
        if len(each) < characters:
            characters -= len(each) + 1
            kept.append(each)
    return "".join(f"{each}\n" for each in kept)


def _joined(signature: str, members: Sequence[str]) -> str:
    """A signature in one line, as the language server shows it, and one line for each member."""
    line = re.sub(r"(?<=[(\[{]) | ?,? (?=[)\]}])", "", " ".join(map(str.strip, signature.split("\n"))))
    return "\n".join([line, *members])
