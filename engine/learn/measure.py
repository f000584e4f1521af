"""Measures what tuning gained, on held-out gaps and on gaps outside the repository, and fits two settings of the tuned
model: the steps of a canvas, and the confidence from which an answer is shown unrequested."""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from rapidfuzz.distance import Levenshtein

from engine.fill.executor import drive
from engine.fill.pipeline import Parts, infill
from engine.lab.eval.evaluation import evaluate
from engine.lab.eval.figures import Figures, figures
from engine.lab.eval.results import Results
from engine.lab.eval.rows import with_parts
from engine.lab.eval.tasks import EvalTask, text_holes
from engine.learn.fills import fitted_threshold, judged
from engine.learn.repository import Repository
from engine.models.base import Model, Sampling

MAX_TOKENS = 96
OUTSIDE = (
    *("argparse", "ast", "bdb", "calendar", "codecs", "configparser", "csv", "dataclasses", "difflib", "fractions"),
    *("ftplib", "gettext", "heapq", "inspect", "ipaddress", "locale", "mailbox", "optparse", "pathlib", "pickle"),
    *("platform", "plistlib", "random", "shelve", "shutil", "smtplib", "statistics", "string", "subprocess", "tarfile"),
    *("tempfile", "textwrap", "threading", "timeit", "tokenize", "traceback", "typing", "uuid", "warnings", "zipfile"),
)
"""Modules of Python's own library: every model here has seen their code, and every machine has them."""
_SURE = (0.85, 0.7, 0.55)
"""Shares of the probability at which the model's own canvases are done."""
FITS = 1 + len(_SURE)
"""How often each gap is filled to choose a schedule."""
_CHOSEN_BY = 100
"""Most gaps that a schedule is chosen by."""
_LOST = 0.01
"""Largest loss of quality for which a schedule with fewer steps is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The settings of the tuned model."""

    max_steps: int
    sure: float
    threshold: float | None
    """None: the model's own, as too little is exact to fit one."""


def held_out_gaps(repository: Repository, count: int) -> tuple[list[EvalTask], list[EvalTask]]:
    """Gaps in held-out files: `count` to report on, and others to choose settings by."""
    texts = [(each.path, each.language, each.text) for each in repository.of("held-out")]
    dealt = text_holes(texts, count + count // 2)
    # They come file by file in turn: of three files, every third gap would be of the same one.
    gaps = random.Random(0).sample(dealt, len(dealt))
    return [gap for at, gap in enumerate(gaps) if at % 3 != 2], gaps[2::3][: choosing_gaps(count)]


def choosing_gaps(count: int) -> int:
    """Most gaps to choose settings by, where `count` are reported on."""
    return min(count // 2, _CHOSEN_BY)


def outside_gaps(count: int) -> list[EvalTask]:
    """Gaps in code that has nothing to do with the repository; always the same."""
    folder = Path(sysconfig.get_path("stdlib"))
    texts: list[tuple[str, str, str]] = []
    for name in OUTSIDE:
        path = folder / f"{name}.py"
        with suppress(OSError, UnicodeDecodeError):
            file = path if path.is_file() else folder / name / "__init__.py"
            texts.append((name, "python", file.read_bytes().decode()))
    return text_holes(texts, count)


def measure(
    model: Model,
    tasks: Sequence[EvalTask],
    schedule: Schedule | None = None,
    on_done: Callable[[], None] = lambda: None,
    kept: Path | None = None,
) -> Figures:
    """Fill gaps as serving does, with the model's own schedule or another one. Results are kept in the folder `kept`,
    so that a run can go on."""
    row = with_parts("tuned" if schedule else "as it was", Parts(sampling=sampling_of(model, schedule)))
    with Results(kept, {}) as results:
        evaluate(model, tasks, [row], results, max_tokens=MAX_TOKENS, on_done=on_done)
        return figures(row.name, results.of(row.name, {task.name for task in tasks}))


def sampling_of(model: Model, schedule: Schedule | None) -> Sampling:
    own = model.info.sampling
    return replace(own, max_steps=schedule.max_steps, sure=schedule.sure) if schedule else own


def fit(model: Model, tasks: Sequence[EvalTask], on_done: Callable[[], None] = lambda: None) -> Schedule:
    """The schedule with the fewest passes that fills as well as the model's own, with its threshold."""
    own = model.info.sampling
    if not tasks:
        return Schedule(max_steps=own.max_steps, sure=own.sure, threshold=None)
    sures = (own.sure, *(share * min(own.sure, 1.0) for share in _SURE))
    tried = [Schedule(max_steps=own.max_steps, sure=sure, threshold=None) for sure in sures]
    best: tuple[float, Schedule] | None = None
    least = 0.0
    for schedule in tried:
        passes, good, answers = _tried(model, tasks, schedule, on_done)
        if best is None:
            least = good - _LOST
        if best is None or (good >= least and passes < best[0]):
            threshold, shown = fitted_threshold(answers)
            best = passes, replace(schedule, threshold=threshold if shown else None)
    assert best is not None
    return best[1]


def _tried(
    model: Model, tasks: Sequence[EvalTask], schedule: Schedule, on_done: Callable[[], None]
) -> tuple[float, float, list[tuple[float, bool]]]:
    """Passes a fill, the quality in [0, 1], and for each fill its confidence and whether it is right to the letter."""
    passes: list[int] = []
    good: list[float] = []
    answers: list[tuple[float, bool]] = []
    for task in tasks:
        request = task.request(max_tokens=MAX_TOKENS)
        filled = drive(model, infill(model, request, parts=Parts(sampling=sampling_of(model, schedule))))
        sure, exact = judged(filled, task)
        similar = Levenshtein.normalized_similarity(filled.candidates[0].text, task.truth) if filled.candidates else 0.0
        passes.append(filled.forwards)
        good.append((exact + similar) / 2)
        answers.append((sure, exact))
        on_done()
    return fmean(passes), fmean(good), answers


def quality(found: Figures) -> float:
    """The quality in [0, 1] that a person sees: exact fills count fully, others by similarity."""
    return (found.exact or 0.0) + (found.similarity or 0.0)
