"""Gaps in real files: the true text is never refused, and no damage passes that an independent parser sees."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.lab.eval.holes import holes
from engine.syntax.languages import GRAMMARS, language_of
from engine.syntax.lexing import lexemes
from engine.syntax.validator import Validator
from tests.engine.syntax.damage import damage
from tests.engine.syntax.parsers import Parsers, Parses, parses_as_python
from tests.engine.syntax.test_languages import CASES


@pytest.fixture
def parses_as_javascript() -> Iterator[Parses]:
    with Parsers() as parsers:
        parses = parsers.of("javascript", "")
        if parses is None:
            pytest.skip("there is no node")
        yield parses


def check_gaps(texts: list[str], language: str, parses: Parses, gaps: int, seed: int) -> Counter[str]:
    """Judge the true text and damaged ones in gaps of files that parse; counts of what was said."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    for text in texts:
        for hole in holes(text, language, rng, count=gaps, longest=300):
            before, fill, after = text[: hole.start], text[hole.start : hole.end], text[hole.end :]
            validator = Validator(before, after, language)
            truth = validator.verdict(fill)
            assert truth is not None
            assert (truth.problems, truth.whole) == ((), True), (hole, fill)
            for _ in range(3):
                bad = damage(fill, rng)
                verdict = validator.verdict(bad)
                assert verdict is not None
                good = parses(before + bad + after)
                assert good or not verdict.whole, (hole, bad)
                counts["good" if good else "bad"] += 1
                counts["blocked" if good and verdict.problems else "refused" if verdict.problems else "passed"] += 1
    return counts


def test_the_standard_library():
    folder = Path(ast.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))]
    sample = random.Random(0).sample([text for text in texts if 1000 < len(text) < 40_000], 12)
    counts = check_gaps(sample, "python", parses_as_python, gaps=6, seed=1)
    assert counts["bad"] > 80
    assert counts["refused"] > 0.8 * counts["bad"]
    assert counts["blocked"] <= 0.02 * counts["good"]


def test_javascript(parses_as_javascript):
    text = (CASES / "inventory.js").read_text(encoding="utf-8")
    assert parses_as_javascript(text)
    counts = check_gaps([text] * 8, "javascript", parses_as_javascript, gaps=8, seed=2)
    assert counts["bad"] > 80
    assert counts["refused"] > 0.8 * counts["bad"]
    assert counts["blocked"] <= 0.05 * counts["good"]


@pytest.mark.parametrize("language", GRAMMARS)
def test_the_true_text_in_every_language(language):
    for file in (path for path in CASES.iterdir() if language_of(path=path.name) == language):
        text = file.read_text(encoding="utf-8")
        for hole in holes(text, language, random.Random(3), count=40):
            validator = Validator(text[: hole.start], text[hole.end :], language)
            verdict = validator.verdict(text[hole.start : hole.end])
            assert verdict is not None
            assert (verdict.problems, verdict.whole) == ((), True), hole


@pytest.mark.parametrize("language", [name for name in GRAMMARS if any(lexemes("(", name))])
def test_an_unpaired_bracket_is_seen_in_every_language(language):
    file = next(path for path in CASES.iterdir() if language_of(path=path.name) == language)
    text = file.read_text(encoding="utf-8")
    seen = Counter[bool]()
    for hole in holes(text, language, random.Random(4), ["line", "lines", "block", "arguments"], count=30):
        fill = text[hole.start : hole.end]
        validator = Validator(text[: hole.start], text[hole.end :], language)
        inside = [
            mark for mark in lexemes(text, language) if mark.kind == "open" and hole.start <= mark.start < hole.end
        ]
        for mark in inside[:3]:
            at = mark.start - hole.start
            verdict = validator.verdict(fill[:at] + fill[at + 1 :])
            assert verdict is not None
            seen[bool(verdict.problems) or not verdict.whole] += 1
    assert seen[True] >= 5
    assert seen[False] <= 0.15 * seen[True]
