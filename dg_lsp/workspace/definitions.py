"""What a document imports from other files of its workspace, as the lines that say how it is used: how a function is
called, what a class offers, what a constant is.

Imports are resolved by where files lie, without running or installing anything; one that leads out of the workspace is
left alone. A name that a package only passes on is followed one file further.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath

from dg_lsp.config.exclusion import name_of
from dg_lsp.workspace.modules import ALL, PYTHON, Binding, Module, read_module
from engine.common.request import Snippet

MAX_DEFINITIONS = 400
"""Of one document's imports."""
MAX_LOOKS = 100_000
"""For them, at files that there may be and at what files pass on: one or two tenths of a second."""
_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs")
_CHAIN = re.compile(r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+")
_CHAIN_BEFORE = re.compile(r"[^\W\d]\w*+(?:\.\w*+)*+\Z")
_CHAIN_CHARS = 200
"""Of names with dots between."""
_NEAR_CHARS = 4000
"""Around the cursor, that are looked at."""
_FAR = 1_000_000
"""Lines, of what is not used there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    uses: str
    """How it is named where it is used: "area", "shapes.area"."""
    file: str
    start: int
    """Where it is in its file, in bytes."""
    text: str
    """Its signature, in whole lines without the last line break."""


class Definitions:
    """Of the imports in documents. `text` gives that of a file, or None where there is none that may be read; names of
    files are paths or URIs, with slashes."""

    def __init__(self, text: Callable[[str], str | None], exists: Callable[[str], bool]) -> None:
        self._text, self._exists = text, exists
        self._modules: dict[str, tuple[int, Module]] = {}
        self._fresh = set[str]()
        """Of these, what is as their files are now."""
        self._looks_left = 0

    def of(self, file: str, imported: Iterable[Binding], language: str, roots: Sequence[str]) -> tuple[Definition, ...]:
        """Of all that a document `file` imports; `roots`: folders that absolute imports begin in, nearest first."""
        self._fresh.clear()
        self._looks_left = MAX_LOOKS
        found = (each for binding in imported for each in self._bound(file, binding, language, roots))
        return tuple(islice((each for each in found if each.file != file), MAX_DEFINITIONS))

    def _bound(self, file: str, binding: Binding, language: str, roots: Sequence[str]) -> Iterator[Definition]:
        for at, member in self._places(file, binding, language, roots):
            offers = self._module(at, language).offers
            if member == ALL:
                prefix = "" if binding.name == ALL else f"{binding.name}."
                for name, (start, text) in offers.items():
                    if not self._may_look():
                        return
                    if not name.startswith("_"):
                        yield Definition(uses=prefix + name, file=at, start=start, text=text)
            elif (known := self._offered(at, member, language, roots)) is not None:
                yield replace(known, uses=binding.name)
            else:
                continue
            return

    def _places(self, file: str, binding: Binding, language: str, roots: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Files that a binding may mean, and what of them."""
        if language not in PYTHON:
            yield from ((each, binding.member) for each in self._scripts(file, binding.module))
            return
        if binding.member != ALL:
            # A module of a package goes before what the package itself calls so.
            inner = f"{binding.module}{'' if binding.module.endswith('.') else '.'}{binding.member}"
            yield from ((each, ALL) for each in self._python(file, inner, roots))
        yield from ((each, binding.member) for each in self._python(file, binding.module, roots))

    def _offered(self, file: str, name: str, language: str, roots: Sequence[str]) -> Definition | None:
        """What a file calls so, or passes on under that name."""
        module = self._module(file, language)
        if name in module.offers:
            start, text = module.offers[name]
            return Definition(uses=name, file=file, start=start, text=text)
        for binding in (*module.bindings.get(name, ()), *module.bindings.get(ALL, ())):
            if not self._may_look():
                return None
            wanted = name if binding.name == ALL else binding.member
            for at, member in self._places(file, replace(binding, member=wanted), language, roots):
                offers = self._module(at, language).offers
                if member in offers:
                    start, text = offers[member]
                    return Definition(uses=name, file=at, start=start, text=text)
        return None

    def _may_look(self) -> bool:
        self._looks_left -= 1
        return self._looks_left >= 0

    def _module(self, file: str, language: str) -> Module:
        held = self._modules.get(file)
        if held is not None and file in self._fresh:
            return held[1]
        text = self._text(file)
        if text is None:
            return Module(offers={}, bindings={})
        self._fresh.add(file)
        if held is None or held[0] != hash(text):
            if len(self._modules) >= MAX_DEFINITIONS:
                self._modules.clear()
            held = self._modules[file] = hash(text), read_module(text, _language_of(file, language))
        return held[1]

    def _python(self, file: str, module: str, roots: Sequence[str]) -> Iterator[str]:
        names = module.lstrip(".")
        above = len(module) - len(names)
        bases = [_above(file, above)] if above else [dirname(file), *roots]
        path = names.replace(".", "/")
        for base in bases:
            for end in (".py", "/__init__.py", ".pyi") if path else ("/__init__.py",):
                if not self._may_look():
                    return
                if self._exists(candidate := (f"{base}/{path}{end}" if path else f"{base}{end}")):
                    yield candidate

    def _scripts(self, file: str, module: str) -> Iterator[str]:
        if not module.startswith("."):
            return
        scheme, slashes, folder = dirname(file).rpartition("//")
        path = scheme + slashes + normpath(join(folder, module))
        stem = re.sub(r"\.[cm]?jsx?$", "", path)
        for candidate in (
            path,
            *(stem + end for end in _SCRIPT_ENDINGS),
            *(f"{path}/index{end}" for end in _SCRIPT_ENDINGS),
        ):
            if not self._may_look():
                return
            if self._exists(candidate):
                yield candidate
                return


def near(definitions: Sequence[Definition], used: Collection[str], text: str, cursor: int) -> list[Definition]:
    """Those that `cursor` stands in the name of first, then those used nearest to it, then those that nothing in the
    document uses yet, then the rest. `used`: by the document."""
    start = max(cursor - _NEAR_CHARS, 0)
    here, lines = text.count("\n", start, cursor), dict[str, int]()
    for number, line in enumerate(text[start : cursor + _NEAR_CHARS].split("\n")):
        for name in chains(line):
            lines[name] = min(lines.get(name, _FAR), abs(number - here))
    begun = _CHAIN_BEFORE.search(text, max(cursor - _CHAIN_CHARS, 0), cursor)

    def distance(each: Definition) -> int:
        if begun and each.uses.startswith(begun[0]) and each.uses != begun[0]:
            return -1
        return _FAR if each.uses not in used else lines.get(each.uses, 2 * _FAR)

    return sorted(definitions, key=distance)


def names_used(text: str) -> frozenset[str]:
    """Names in a text; one that stands there once alone is where it is imported."""
    counts = Counter(head for chain in _CHAIN.findall(text) for head in _heads(chain))
    return frozenset(name for name, count in counts.items() if count > 1 or "." in name)


def chains(text: str) -> set[str]:
    """All names in a text, with what they are asked for: of "a.b" also "a"."""
    return {head for chain in _CHAIN.findall(text) for head in _heads(chain)}


def within(definitions: Iterable[Definition], max_chars: int) -> Iterator[Definition]:
    """The first of them that have so many characters together, none twice."""
    taken = set[tuple[str, int]]()
    for each in definitions:
        if (each.file, each.start) not in taken and len(each.text) <= max_chars:
            max_chars -= len(each.text)
            taken.add((each.file, each.start))
            yield each


def as_snippets(definitions: Iterable[Definition]) -> Iterator[Snippet]:
    """One a file, each file's in its own order."""
    ordered = sorted(definitions, key=lambda each: (each.file, each.start))
    for file, group in groupby(ordered, key=lambda each: each.file):
        yield Snippet(path=PurePosixPath(name_of(file)).name, text="".join(f"{each.text}\n" for each in group))


def _heads(chain: str) -> Iterator[str]:
    """`a`, `a.b` and `a.b.c` of the last one; not those longer than what is looked up."""
    at = -1
    while 0 <= (at := chain.find(".", at + 1)) <= _CHAIN_CHARS:
        yield chain[:at]
    if at < 0:
        yield chain


def _language_of(file: str, language: str) -> str:
    """A file's own: TypeScript imports JavaScript, and the other way round."""
    if language in PYTHON:
        return "python"
    return {"ts": "typescript", "tsx": "typescriptreact"}.get(file.rpartition(".")[2], "javascript")


def _above(file: str, dots: int) -> str:
    folder = dirname(file)
    for _ in range(dots - 1):
        folder = dirname(folder)
    return folder
