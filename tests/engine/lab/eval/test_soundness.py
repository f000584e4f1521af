"""What is offered parses, by other parsers than ours: gaps in real files, filled by oracles that err on purpose."""

from __future__ import annotations

import email
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.common.request import FillRequest
from engine.fill.executor import drive
from engine.fill.pipeline import Parts, infill
from engine.lab.eval.tasks import EvalTask, code_holes
from engine.models.oracle.model import Case, Oracle, Slip
from tests.engine.syntax.damage import damage
from tests.engine.syntax.parsers import Parsers

OWN = Path(__file__).parents[3] / "cases" / "syntax"
PYTHON = [Path(module.__file__).parent for module in (email, json)]
LONGEST = 110
"""Tokens of a truth; longer ones are left out, for no model could give them."""
AROUND = 400
"""Characters on either side of the gap; an oracle looks at fewer."""
WAYS = {"unchecked": Parts(repair=False), "repaired": Parts()}


@pytest.fixture(scope="module")
def tasks() -> list[EvalTask]:
    python = [task for folder in PYTHON for task in code_holes(folder, "python", 3, 0)]
    own = [
        task
        for language, count in (("javascript", 4), ("go", 2), ("rust", 2))
        for task in code_holes(OWN, language, count, 0)
    ]
    # The whole file is parsed again for each suggestion.
    return [task for task in (*python, *own) if len(task.prefix + task.suffix) < 40_000]


def erring(task: EvalTask) -> Iterator[tuple[str, Oracle]]:
    """One that knows the truth, one that gets a token wrong until that is denoised again, one that knows nothing but a
    damaged truth."""

    def oracle(answer: str, slip: Slip | None = None) -> Oracle:
        return Oracle("oracle", [Case(text=f"{task.prefix[-AROUND:]}▮{answer}▮{task.suffix[:AROUND]}", slip=slip)])

    rng = random.Random(f"0/{task.name}")
    yield "right", oracle(task.truth)
    place = rng.randrange(len(oracle(task.truth).tokenize(task.truth)))
    yield "slips", oracle(task.truth, Slip(at=place, text=rng.choice(")]}({[\"':,;.=")))
    yield "insists", oracle(damage(task.truth, rng))


@pytest.mark.timeout(600)
def test_nothing_is_offered_that_breaks_a_file_and_right_fills_are_kept(tasks):
    """`broke`: an independent parser refuses the file with the fill, and takes it with an empty gap."""
    counts: Counter[tuple[str, str, str]] = Counter()
    languages: set[str] = set()
    with Parsers() as parsers:
        for task in tasks:
            parses = parsers.of(task.language, task.prefix + task.truth + task.suffix)
            if parses is None and task.language in ("python", "javascript"):
                continue
            languages.add(task.language)
            for name, model in erring(task):
                if len(model.tokenize(task.truth)) > LONGEST:
                    continue
                texts: dict[str, str | None] = {}
                for way, parts in WAYS.items():
                    request = FillRequest(
                        prefix=task.prefix, suffix=task.suffix, language=task.language, max_tokens=LONGEST + 10
                    )
                    candidates = drive(model, infill(model, request, parts=parts)).candidates
                    text = texts[way] = candidates[0].text if candidates else None
                    refused = parses is not None and text is not None and not parses(task.prefix + text + task.suffix)
                    counts[name, way, "exact"] += text == task.truth
                    counts[name, way, "refused"] += refused
                    counts[name, way, "broke"] += refused and parses(task.prefix + task.suffix)
                counts[name, "repaired", "kept"] += texts["unchecked"] == texts["repaired"] == task.truth
    assert languages >= {"python", "go", "rust"}
    assert counts["slips", "unchecked", "broke"] >= 1, "the model does not err, so nothing is shown"
    assert [counts[name, "repaired", "broke"] for name in ("right", "slips", "insists")] == [0, 0, 0]
    assert counts["right", "repaired", "kept"] >= 0.95 * counts["right", "unchecked", "exact"] > 0
    assert counts["slips", "repaired", "exact"] > counts["slips", "unchecked", "exact"]
    assert counts["slips", "repaired", "refused"] < 0.2 * counts["slips", "unchecked", "refused"] + 1
