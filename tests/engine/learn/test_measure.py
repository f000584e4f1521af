"""What a tuned model is measured on."""

import random
from typing import Any

import pytest

from engine.fill.loading import load
from engine.fill.pipeline import Parts, infill
from engine.lab.eval.tasks import EvalTask
from engine.learn import measure
from engine.learn.corpus import Document
from engine.learn.measure import FITS, fit, held_out_gaps
from engine.learn.repository import Repository


def code(name: str, functions: int = 40) -> str:
    rng = random.Random(name)
    return "".join(
        f"def {name}_{number}(value, other):\n    total = value * {rng.randrange(99)} + other\n"
        f"    if total > {rng.randrange(99)}:\n        return [total, value]\n    return None\n\n\n"
        for number in range(functions)
    )


@pytest.mark.parametrize(("files", "count"), [(3, 6), (3, 60), (6, 60)])
def test_settings_are_chosen_by_gaps_of_the_files_that_are_reported_on(files: int, count: int):
    documents = tuple(
        Document(split="held-out", language="python", package="repository", path=f"{name}.py", text=code(name))
        for name in "abcdef"[:files]
    )
    reported, chosen_by = held_out_gaps(Repository(documents=documents, left_out={}, digests={}), count)
    assert (len(reported), len(chosen_by)) == (count, count // 2)
    assert {gap.name for gap in reported}.isdisjoint(gap.name for gap in chosen_by)
    of_reported, of_chosen = ({gap.name.partition(":")[0] for gap in gaps} for gaps in (reported, chosen_by))
    assert of_reported == {each.path for each in documents}
    assert len(of_chosen) >= min(files, count // 3)


def test_schedules_that_are_tried_are_less_sure_than_the_model_s_own(monkeypatch: pytest.MonkeyPatch):
    model = load("bundled", "cpu").model
    tried: list[float] = []

    def noted(*given: Any, parts: Parts, **others: Any) -> Any:
        assert parts.sampling
        tried.append(parts.sampling.sure)
        return infill(*given, parts=parts, **others)

    monkeypatch.setattr(measure, "infill", noted)
    task = EvalTask(name="a", kind="line", language="python", prefix="double = 2 * ", suffix="\n", truth="value")
    schedule = fit(model, [task])
    own = model.info.sampling.sure
    assert len({*tried}) == FITS
    assert max(tried) == own
    assert schedule.sure in tried
