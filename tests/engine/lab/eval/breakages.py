"""Real code with one token taken out, and what `fix` makes of it: whether it parses again, and is as it was.

python -m tests.engine.lab.eval.breakages development
python -m tests.engine.lab.eval.breakages FOLDER --count 300
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import click
from tree_sitter import Node

from engine.common.errors import BadInput
from engine.common.percentiles import percentile
from engine.common.request import FillRequest
from engine.fill.executor import drive
from engine.fill.loading import load
from engine.fill.syntax_fix import syntax_fix
from engine.lab.eval.reserved.packages import Role, reserved_files, reserved_sources
from engine.models.base import Model
from engine.syntax.compiler import diagnose
from engine.syntax.languages import GRAMMARS, PYTHON, language_of
from engine.syntax.parsed_text import parse_text
from engine.syntax.tree import SyntaxTree, parsed

BreakageKind = Literal["bracket", "quote", "colon", "comma", "keyword"]
KINDS: tuple[BreakageKind, ...] = get_args(BreakageKind)

_SHORTEST_FILE, _LONGEST_FILE = 500, 40_000
"""Characters."""
_DRAWS = 8
"""Places that are tried in a file for one that breaks it."""
_QUOTES = ('"""', "'''", '"', "'", "`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakage:
    """`text` without `text[start:end]`, which no parser takes."""

    name: str
    language: str
    kind: BreakageKind
    text: str
    start: int
    end: int

    @property
    def broken(self) -> str:
        return self.text[: self.start] + self.text[self.end :]


def broken(name: str, text: str, language: str, kind: BreakageKind, rng: random.Random) -> Breakage | None:
    """A file with a token of a kind taken out; None where the absence of none is noticed, or it is broken already."""
    tree = parsed(text, language)
    if tree is None or not is_sound(text, language):
        return None
    places = list(_places(tree, kind))
    for start, end in rng.sample(places, min(_DRAWS, len(places))):
        found = Breakage(name=name, language=language, kind=kind, text=text, start=start, end=end)
        if not is_sound(found.broken, language):
            return found
    return None


def breakages(files: Sequence[tuple[str, str, str]], count: int, seed: int = 0) -> list[Breakage]:
    """`count` of them, as many of each kind, from files drawn from `files`: name, text, language (`Grammar.name`)."""
    rng = random.Random(seed)
    found: list[Breakage] = []
    for _ in range(20 * count if files else 0):
        if len(found) == count:
            break
        kind = KINDS[len(found) % len(KINDS)]
        name, text, language = rng.choice(files)
        case = broken(name, text, language, kind, rng)
        found += [case] if case else []
    return found


def is_sound(text: str, language: str) -> bool:
    """Whether a text parses, and, for Python, compiles."""
    found = parse_text(text, language)
    return bool(found and found.is_sound) and (language not in PYTHON or diagnose(text, language) is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """What came of a breakage; no text where nothing was found."""

    case: Breakage
    text: str | None
    ms: float

    @property
    def parses(self) -> bool:
        return self.text is not None and is_sound(self.text, self.case.language)

    @property
    def as_it_was(self) -> bool:
        return self.text == self.case.text


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakageFigures:
    """Shares in [0, 1]."""

    count: int
    parse: float
    as_they_were: float
    damaged: float
    """Of all, those that came out as something that no parser takes."""
    ms: tuple[float, float]
    """Median and 95th percentile."""


def mended(model: Model, cases: Iterable[Breakage]) -> Iterator[Mended]:
    """The first thing that `fix` offers for each."""
    for case in cases:
        request = FillRequest(task="fix", prefix="", old=case.broken, suffix="", language=case.language)
        began = time.perf_counter()
        filled = drive(model, syntax_fix(model, request))
        ms = (time.perf_counter() - began) * 1000
        yield Mended(case=case, text=filled.candidates[0].text if filled.candidates else None, ms=ms)


def breakage_figures(results: Sequence[Mended]) -> BreakageFigures:
    count = max(1, len(results))
    times = [each.ms for each in results]
    return BreakageFigures(
        count=len(results),
        parse=sum(each.parses for each in results) / count,
        as_they_were=sum(each.as_it_was for each in results) / count,
        damaged=sum(each.text is not None and not each.parses for each in results) / count,
        ms=(percentile(times, 50) or 0.0, percentile(times, 95) or 0.0),
    )


def files_in(folder: Path, language: str | None = None) -> list[tuple[str, str, str]]:
    """The files of a folder whose language is known, or is `language`, in order: path, text, language."""
    found: list[tuple[str, str, str]] = []
    for path in sorted(folder.rglob("*")):
        spoken = language_of(path=path.name)
        if spoken and language in (None, spoken) and path.is_file() and path.stat().st_size <= _LONGEST_FILE:
            text = path.read_bytes().decode(errors="replace")
            if len(text) >= _SHORTEST_FILE and "\ufffd" not in text:
                found.append((path.relative_to(folder).as_posix(), text, spoken))
    return found


def files_of(role: Role) -> list[tuple[str, str, str]]:
    """The Python files of the reserved packages of a role. Raises BadInput where no registry is reached."""
    names = {each.name for each in reserved_sources() if each.role == role}
    return [
        (f"{file.package}/{file.path}", file.text, "python")
        for file in reserved_files(earlier=False)
        if file.package in names and _SHORTEST_FILE <= len(file.text) <= _LONGEST_FILE
    ]


def _places(tree: SyntaxTree, kind: BreakageKind) -> Iterator[tuple[int, int]]:
    for node in _leaves(tree.root):
        text = tree.said(node)
        start = tree.offset(node.start_byte)
        if _kind_of(node, text, tree.language) == kind:
            if kind == "quote":
                # A prefix, as of an f-string, stays.
                quote = next(each for each in _QUOTES if text.endswith(each))
                start += len(text) - len(quote)
                text = quote
            yield start, start + len(text)


def _kind_of(node: Node, text: str, language: str) -> BreakageKind | None:
    if text and text in "()[]{}":
        return "bracket"
    if text in (":", ","):
        return "colon" if text == ":" else "comma"
    if node.type in ("string_start", "string_end") or (text in _QUOTES and not node.is_named):
        return "quote"
    if text.isalpha() and (not node.is_named or text in GRAMMARS[language].keywords.split()):
        return "keyword"
    return None


def _leaves(root: Node) -> Iterator[Node]:
    cursor = root.walk()
    while True:
        if cursor.goto_first_child():
            continue
        if cursor.node and not cursor.node.is_missing:
            yield cursor.node
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


@click.command()
@click.argument("source", metavar="development|reported|FOLDER")
@click.option("--language", help="Of the files of a folder: only those in this one.")
@click.option("--count", default=300, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--model", default="bundled", show_default=True)
@click.option("--failed", is_flag=True, help="Show what did not come out as it was.")
def main(source: str, language: str | None, count: int, seed: int, model: str, failed: bool) -> None:
    """Break real code and mend it: of the reserved packages of a role, or of a folder."""
    role = next((each for each in get_args(Role) if each == source), None)
    files = files_of(role) if role else files_in(Path(source), language)
    cases = breakages(files, count, seed)
    if not cases:
        raise BadInput(f"Nothing in {source} can be broken: name a folder with source files in it.")
    results: list[Mended] = []
    for each in mended(load(model).model, cases):
        results.append(each)
        if failed and not each.as_it_was:
            click.echo(_shown(each))
    for kind in (*KINDS, None):
        some = [each for each in results if kind in (None, each.case.kind)]
        said = breakage_figures(some)
        click.echo(
            f"{kind or 'all':8} {said.count:4}  parse {said.parse:6.1%}  as they were {said.as_they_were:6.1%}  "
            f"damaged {said.damaged:5.1%}  p50 {said.ms[0]:.0f} ms  p95 {said.ms[1]:.0f} ms"
        )


def _shown(result: Mended) -> str:
    """The lines around what was taken out, and where the answer differs."""
    case = result.case
    start = case.text.rfind("\n", 0, max(0, case.text.rfind("\n", 0, case.start))) + 1
    end = case.text.find("\n", case.text.find("\n", case.end) + 1)
    wanted = f"{case.text[start : case.start]}⟦{case.text[case.start : case.end]}⟧{case.text[case.end : end]}"
    if result.text is None:
        return f"--- {case.name} ({case.kind}, {result.ms:.0f} ms)\n{wanted}\n    no answer\n"
    at = next((at for at, pair in enumerate(zip(case.broken, result.text, strict=False)) if pair[0] != pair[1]), 0)
    low, high = result.text.rfind("\n", 0, at) + 1, result.text.find("\n", at)
    return f"--- {case.name} ({case.kind}, {result.ms:.0f} ms)\n{wanted}\n  > {result.text[low:high]}\n"


if __name__ == "__main__":
    main()
