"""Signatures of what a document imports from other files of its workspace: functions, classes with their members,
constants.

Imports are resolved by file paths, without running or installing anything; imports from outside the workspace are
ignored. A name that a package re-exports is followed one file further.
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
"""Limit for one document."""
MAX_LOOKS = 100_000
"""Limit of checks of possible files and re-exports for one document: 0.1 to 0.2 s."""
_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs")
_CHAIN = re.compile(r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+")
_CHAIN_BEFORE = re.compile(r"[^\W\d]\w*+(?:\.\w*+)*+\Z")
_CHAIN_CHARS = 200
"""Longest dotted name."""
_NEAR_CHARS = 4000
"""Characters around the cursor that are searched for names."""
_FAR = 1_000_000
"""The distance, in lines, of a name that is not used there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    uses: str
    """Its name in the importing document: "area", "shapes.area"."""
    file: str
    start: int
    """Its offset in the file, in bytes."""
    text: str
    """Its signature: whole lines without the last line break."""


class Definitions:
    """Resolves imports. `text(file)` returns a file's text, or None where it may not be read. Files are named by paths
    or URIs, with slashes."""

    def __init__(self, text: Callable[[str], str | None], exists: Callable[[str], bool]) -> None:
        self._text, self._exists = text, exists
        self._modules: dict[str, tuple[int, Module]] = {}
        self._fresh = set[str]()
        """The modules that are up to date."""
        self._looks_left = 0

    def of(self, file: str, imported: Iterable[Binding], language: str, roots: Sequence[str]) -> tuple[Definition, ...]:
        """The definitions of all that `file` imports. `roots`: folders where absolute imports start, nearest first."""
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
        """Files that a binding may refer to, each with the member."""
        if language not in PYTHON:
            yield from ((each, binding.member) for each in self._scripts(file, binding.module))
            return
        if binding.member != ALL:
            # A submodule has priority over a name in the package itself.
            inner = f"{binding.module}{'' if binding.module.endswith('.') else '.'}{binding.member}"
            yield from ((each, ALL) for each in self._python(file, inner, roots))
        yield from ((each, binding.member) for each in self._python(file, binding.module, roots))

    def _offered(self, file: str, name: str, language: str, roots: Sequence[str]) -> Definition | None:
        """The definition of a name in a file, or of what the file re-exports by that name."""
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
    """Definitions in order: whose name is being typed at `cursor`, used nearest to it, not used in the document yet,
    the rest. `used`: names that the document uses."""
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
    """Names that a text uses: those that occur more than once, as the import is one occurrence."""
    counts = Counter(head for chain in _CHAIN.findall(text) for head in _heads(chain))
    return frozenset(name for name, count in counts.items() if count > 1 or "." in name)


def chains(text: str) -> set[str]:
    """All dotted names in a text and their beginnings: of "a.b" also "a"."""
    return {head for chain in _CHAIN.findall(text) for head in _heads(chain)}


def within(definitions: Iterable[Definition], max_chars: int) -> Iterator[Definition]:
    """The first definitions within `max_chars` together, each once."""
    chosen = set[tuple[str, int]]()
    for each in definitions:
        if (each.file, each.start) not in chosen and len(each.text) <= max_chars:
            max_chars -= len(each.text)
            chosen.add((each.file, each.start))
            yield each


def as_snippets(definitions: Iterable[Definition]) -> Iterator[Snippet]:
    """One snippet for each file, in the file's order."""
    ordered = sorted(definitions, key=lambda each: (each.file, each.start))
    for file, group in groupby(ordered, key=lambda each: each.file):
        yield Snippet(path=PurePosixPath(name_of(file)).name, text="".join(f"{each.text}\n" for each in group))


def _heads(chain: str) -> Iterator[str]:
    """`a`, `a.b` and `a.b.c` for the last one, up to `_CHAIN_CHARS`."""
    at = -1
    while 0 <= (at := chain.find(".", at + 1)) <= _CHAIN_CHARS:
        yield chain[:at]
    if at < 0:
        yield chain


def _language_of(file: str, language: str) -> str:
    """The file's own language, as TypeScript and JavaScript import each other."""
    if language in PYTHON:
        return "python"
    return {"ts": "typescript", "tsx": "typescriptreact"}.get(file.rpartition(".")[2], "javascript")


def _above(file: str, dots: int) -> str:
    folder = dirname(file)
    for _ in range(dots - 1):
        folder = dirname(folder)
    return folder
