"""How well edits work on real files: `python -m engine.eval.mending fix|strength FOLDER...`. Prints JSON lines."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.analysis.parsed_text import parse_text
from engine.core.errors import BadInput
from engine.core.request import FillRequest
from engine.decoding.executor import drive
from engine.edit.pieces import in_pieces
from engine.edit.syntax_fix import WAYS, Way, by_strength, syntax_fix, touched_chars
from engine.eval.breakages import Breakage, breakage
from engine.loader.loading import load
from engine.models.base import Model
from engine.syntax.holes import holes

ENDINGS = {".py": "python", ".js": "javascript"}
SMALLEST, LARGEST = 500, 20_000
"""Characters of a file."""
STRENGTHS = (0.1, 0.3, 0.5, 0.7, 1.0)
FROM_NOISE: tuple[Way, ...] = (by_strength(1.0),)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Folders = Annotated[list[Path], typer.Argument(help="Folders of Python and JavaScript files.")]
Cases = Annotated[int, typer.Option(min=1, help="How many in all, half of each language.")]
Seed = Annotated[int, typer.Option(help="Chooses files and places.")]
ModelName = Annotated[str, typer.Option("--model", help="As for `dg-lsp fill`.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What one way made of one case."""

    parses: bool
    touched: int
    """Characters that differ from the original."""
    seconds: float


@dataclass(slots=True, kw_only=True)
class Tally:
    """What one way to fix came to."""

    cases: int = 0
    parses: int = 0
    identical: int = 0
    touched: list[int] = field(default_factory=list[int])
    """Characters that differ from the original, by case that parses again."""
    seconds: float = 0.0
    """Of processor time."""

    def add(self, tried: Tried) -> None:
        """Count one case."""
        self.cases += 1
        self.seconds += tried.seconds
        if tried.parses:
            self.parses += 1
            self.identical += tried.touched == 0
            self.touched.append(tried.touched)

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "cases": self.cases,
            "parses": round(self.parses / max(self.cases, 1), 3),
            "identical": round(self.identical / max(self.cases, 1), 3),
            "touched_beyond_mean": round(sum(self.touched) / max(len(self.touched), 1), 2),
            "processor_seconds_mean": round(self.seconds / max(self.cases, 1), 2),
        }


def files(folders: Sequence[Path], language: str, rng: random.Random) -> Iterator[str]:
    """Texts that parse, in random order, over and over. Raises BadInput where there is none."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if ENDINGS.get(path.suffix) == language]
    rng.shuffle(paths)
    found = 0
    while True:
        for path in paths:
            text = path.read_text(encoding="utf-8", errors="replace")
            state = parse_text(text, language) if SMALLEST <= len(text) <= LARGEST else None
            if state and state.is_sound and "\r" not in text:
                found += 1
                yield text
        if not found:
            raise BadInput(f"No file of {language} that parses was found: name another folder.")


def breakages(folders: Sequence[Path], count: int, seed: int) -> Iterator[Breakage]:
    """Seeded breakages, languages by turns."""
    rng = random.Random(seed)
    sources = [(language, files(folders, language, rng)) for language in ENDINGS.values()]
    made = 0
    while made < count:
        language, texts = sources[made % len(sources)]
        found = breakage(next(texts), language, rng)
        if found:
            made += 1
            yield found


def mended(model: Model, case: Breakage, ways: Sequence[Way]) -> str | None:
    """A broken text after the best fix."""
    request = FillRequest(task="fix", prefix="", old=case.broken, suffix="", language=case.language)
    candidates = drive(model, syntax_fix(model, request, ways=ways)).candidates
    return candidates[0].text if candidates else None


def tried_with(way: Callable[[Breakage], str | None], case: Breakage) -> Tried:
    """Run one way on one case."""
    began = time.process_time()
    text = way(case)
    seconds = time.process_time() - began
    state = parse_text(text, case.language) if text is not None else None
    parses = state is not None and state.is_sound
    return Tried(parses=parses, touched=touched_chars(case.original, text or ""), seconds=round(seconds, 2))


def without_line(case: Breakage) -> str:
    """A broken text without the line that was broken."""
    start = case.broken.rfind("\n", 0, case.start) + 1
    end = case.broken.find("\n", case.start + len(case.new))
    return case.broken[:start] + (case.broken[end + 1 :] if end >= 0 else "")


@app.command()
def fix(folders: Folders, cases: Cases = 200, seed: Seed = 0, model: ModelName = "bundled") -> None:
    """Break files and fix them: against starting from noise, and against deleting the line."""
    infiller = load(model, "cpu")
    ways: dict[str, Callable[[Breakage], str | None]] = {
        "fix": lambda case: mended(infiller.model, case, WAYS),
        "from noise": lambda case: mended(infiller.model, case, FROM_NOISE),
        "delete line": without_line,
    }
    tallies = {(way, part): Tally() for way in ways for part in ("all", *ENDINGS.values(), "drop", "add", "swap")}
    for case in breakages(folders, cases, seed):
        tried = {name: tried_with(way, case) for name, way in ways.items()}
        for name, each in tried.items():
            for part in ("all", case.language, case.kind):
                tallies[name, part].add(each)
        told = {"language": case.language, "kind": case.kind, "old": case.original[case.start : case.end]}
        told |= {"new": case.new} | {name: asdict(each) for name, each in tried.items()}
        typer.echo(json.dumps(told))
    for (name, part), tally in tallies.items():
        typer.echo(json.dumps({"way": name, "part": part, **tally.told()}))


@app.command()
def strength(folders: Folders, cases: Cases = 20, seed: Seed = 0, model: ModelName = "bundled") -> None:
    """Rewrite selections by different strengths: what stays, what parses, how many steps."""
    infiller = load(model, "cpu")
    rng = random.Random(seed)
    sources = [(language, files(folders, language, rng)) for language in ENDINGS.values()]
    kept: dict[float, list[float]] = {each: [] for each in STRENGTHS}
    steps: Counter[float] = Counter()
    for index in range(cases):
        language, texts = sources[index % len(sources)]
        text = next(texts)
        (hole, *_) = holes(text, language, rng, ["lines"], count=1, longest=250)
        for each in STRENGTHS:
            old = text[hole.start : hole.end]
            request = FillRequest(
                task="rewrite",
                prefix=text[: hole.start],
                old=old,
                suffix=text[hole.end :],
                language=language,
                strength=each,
            )
            filled = drive(infiller.model, in_pieces(infiller.model, request))
            steps[each] += filled.steps
            kept[each] += [_alike(old, candidate.text) for candidate in filled.candidates]
    for each in STRENGTHS:
        typer.echo(
            json.dumps(
                {
                    "strength": each,
                    "cases": cases,
                    "offered": round(len(kept[each]) / cases, 3),
                    "kept": round(sum(kept[each]) / max(len(kept[each]), 1), 3),
                    "steps_mean": round(steps[each] / cases, 1),
                }
            )
        )


def _alike(old: str, new: str) -> float:
    """Share of the old characters that are still there, in order."""
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(len(old), 1)


if __name__ == "__main__":
    app()
