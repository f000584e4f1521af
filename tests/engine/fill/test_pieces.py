"""Rewriting: what is kept, how long a selection may be, line ends, what is never offered."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from msgspec import structs

from engine.common.errors import BadInput
from engine.common.request import Draft, Filled, FillRequest, RecentEdit
from engine.fill.answering import answering
from engine.fill.executor import drive
from engine.fill.pieces import MOST_CHARS, in_pieces
from engine.fill.pipeline import infill
from engine.models.oracle.model import Case, Oracle, Slip
from engine.syntax.validator import Validator
from tests.engine.tiny import tiny_model

HEAD, TAIL = "# A file.\n", "\nprint('the end')\n"
OLD = "def grow(size):\n    size = size + 1\n    total = size * 2\n    return total\n"
NEW = "def grow(size):\n    size += 1\n    total = size * 2\n    return total\n"


def rewrite(case: Case | str, old: str = OLD, drafts: list[Draft] | None = None, **options) -> Filled:
    """Ask an oracle that would have the case's text."""
    case = case if isinstance(case, Case) else Case(text=f"{HEAD}▮{case}▮{TAIL}")
    request = FillRequest(prefix=HEAD, suffix=TAIL, **{"old": old, "language": "python", "task": "rewrite", **options})
    model = Oracle("oracle", [case])
    return drive(model, answering(model, request), drafts.append if drafts is not None else None)


def texts(filled: Filled) -> list[str]:
    return [candidate.text for candidate in filled.candidates]


@pytest.mark.parametrize("strength", [0.1, 0.3, 0.6, 1.0])
def test_the_model_s_own_text_takes_the_old_one_s_place(strength: float):
    filled = rewrite(NEW, strength=strength)
    assert texts(filled) == [NEW]
    assert filled.candidates[0].syntax == "ok"


def test_a_text_that_is_good_already_is_not_offered_again():
    assert texts(rewrite(OLD)) == []


def test_a_lower_strength_takes_fewer_steps():
    slow = Case(text=f"{HEAD}▮{NEW}▮{TAIL}", reveal=1)
    steps = [rewrite(slow, strength=strength, language="").steps for strength in (0.1, 0.3, 1.0)]
    assert steps == sorted(set(steps))
    assert steps[0] <= 5


def test_what_is_kept_stays_and_the_rest_changes_around_it():
    start = OLD.index("    total")
    keep = ((start, start + len("    total = size * 2\n")), (0, 3))
    assert texts(rewrite(NEW, strength=1.0, keep=keep)) == [NEW]
    other = NEW.replace("    total = size * 2\n", "    total = 2 * size\n")
    assert all("    total = size * 2\n" in text for text in texts(rewrite(other, strength=1.0, keep=keep)))


def test_several_holes_are_open_at_once():
    """The lines between them are pinned: the second hole is filled in the very steps of the first."""
    old, new = "a = 1\nfixed = 0\nb = 1\n", "a = 2\nfixed = 0\nb = 3\n"
    keep = ((len("a = "), 0), (old.index("fixed"), old.index("b =")))
    drafts: list[Draft] = []
    filled = rewrite(new, old=old, strength=1.0, keep=(keep[1],), drafts=drafts)
    assert texts(filled) == [new]
    pinned = {"".join(cell.text for cell in draft.cells if cell.state == "pinned") for draft in drafts}
    assert all("fixed = 0\n" in text for text in pinned)


def test_a_selection_longer_than_a_canvas_goes_in_several():
    old = "".join(f"value_{at} = compute({at})\n" for at in range(120))
    new = old.replace("compute(3)", "measure(3)").replace("compute(117)", "measure(117)")
    drafts: list[Draft] = []
    filled = rewrite(new, old=old, strength=1.0, drafts=drafts, n=2)
    assert texts(filled) == [new]
    assert filled.width > 512
    assert all(draft.text.count("\n") >= 60 for draft in drafts)
    assert "measure(3)" in drafts[-1].text


def test_what_adds_a_problem_is_never_offered_nor_cut():
    broken = NEW.replace("size += 1", "size += (")
    assert texts(rewrite(broken, strength=1.0)) == []
    mended = Case(text=f"{HEAD}▮{NEW}▮{TAIL}", slip=Slip(at=5, text=")"))
    for candidate in rewrite(mended, strength=1.0).candidates:
        verdict = Validator(HEAD, TAIL, "python", OLD).verdict(candidate.text)
        assert verdict
        assert verdict.is_clean


def test_an_unknown_language_is_offered_unchecked():
    (candidate,) = rewrite("x = )(\n", old="x = 1\n", strength=1.0, language="klingon").candidates
    assert (candidate.text, candidate.syntax) == ("x = )(\n", "unchecked")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_keep_their_ends(end: str):
    (text,) = texts(rewrite(NEW, old=OLD.replace("\n", end), strength=1.0))
    assert text == NEW.replace("\n", end)


def test_lines_that_did_not_change_keep_even_odd_ends():
    old = OLD.replace("\n", "\r\n", 1)
    (text,) = texts(rewrite(NEW, old=old, strength=1.0))
    assert text == NEW.replace("\n", "\r\n", 1)


def test_kept_spans_count_in_the_text_as_it_came():
    old = OLD.replace("\n", "\r\n")
    start = old.index("    total")
    (text,) = texts(rewrite(NEW, old=old, strength=1.0, keep=((start, old.index("    return")),)))
    assert text == NEW.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"old": " \n"}, "nothing to rewrite"),
        ({"keep": ((0, len(OLD)),)}, "All of the selection is to be kept"),
        ({"keep": ((0, len(OLD) - 1),)}, "All of the selection is to be kept"),
        ({"old": "x" * (MOST_CHARS + 1)}, "1,000,001 characters; up to 1,000,000 are rewritten: select less"),
    ],
)
def test_what_can_not_be_rewritten_is_refused(options, message):
    with pytest.raises(BadInput, match=message):
        rewrite(NEW, **options)


@pytest.fixture(scope="module")
def model(released: Path):
    """Uniform noise, whose length strategy leaves no slot unused; a chat template that takes the last token back."""
    model = tiny_model(released)
    pieces = [
        token for token in range(model.info.noise.vocab_size) if max(model.vocabulary.bytes[token], default=0) > 127
    ]
    model.info = replace(model.info, forbidden_ids=(*model.info.forbidden_ids, *pieces))
    return model


@pytest.mark.parametrize("strength", [0.2, 1.0])
def test_a_chat_model_rewrites_too_and_keeps_what_it_must(model, strength: float):
    old = "width * height"
    keep = ((0, len("width")),)
    request = FillRequest(prefix="x = ", suffix="\n", task="rewrite", old=old, strength=strength, keep=keep, n=4)
    filled = drive(model, in_pieces(model, request))
    assert filled.candidates
    for candidate in filled.candidates:
        assert candidate.text.startswith("width")
        assert candidate.text != old
    assert drive(model, in_pieces(model, request)).candidates == filled.candidates


def test_a_chat_model_is_told_the_instruction_and_the_old_text(model):
    request = FillRequest(prefix="x = ", suffix="\n", task="rewrite", old="width * height", instruction="Shorter.")
    said = model.detokenize(model.prompt(request).context)
    assert "Shorter." in said
    assert "width * height" in said
    without = model.detokenize(model.prompt(structs.replace(request, instruction="", task="fill")).context)
    assert "width * height" not in without


def test_a_chat_model_is_told_of_recent_edits(model):
    edits = (
        RecentEdit(path="a.py", old="size = 1", new="width = 1"),
        RecentEdit(path="b.py", old="", new="height = 2\ndepth = 3"),
    )
    said = model.detokenize(model.prompt(FillRequest(prefix="x = ", suffix="\n", edits=edits)).context)
    first = "Lately changed in a.py:\n```diff\n-size = 1\n+width = 1\n```"
    assert f"{first}\n\nLately changed in b.py:\n```diff\n+height = 2\n+depth = 3\n```" in said
    long = RecentEdit(path="c.py", old="", new="x = 1\n" * 50_000)
    said = model.detokenize(model.prompt(FillRequest(prefix="x = ", suffix="\n", edits=(*edits, long))).context)
    assert "Lately" not in said, "the newest come first, and this one fills all the room"


def test_a_part_that_is_not_noise_stays_under_masks(absorbing):
    old = absorbing.detokenize(absorbing.tokenize("alpha = beta + gamma\n" * 3))
    alike: dict[float, list[float]] = {}
    for strength in (0.2, 1.0):
        request = FillRequest(prefix="", suffix="\n", task="rewrite", old=old, strength=strength, n=4)
        texts = [each.text for each in drive(absorbing, infill(absorbing, request)).candidates]
        alike[strength] = [SequenceMatcher(None, old, text, autojunk=False).ratio() for text in texts]
    assert min(alike[0.2]) > 0.5 > max(alike[1.0])


@pytest.fixture(scope="module")
def absorbing():
    from engine.fill.loading import load

    return load(str(Path(__file__).parents[2] / "models" / "toy-absorbing"), "cpu").model


def test_a_large_selection_is_cut_in_time_that_grows_as_it_does():
    old, began = "a = 1\r\n" * 100_000, time.process_time()
    request = FillRequest(prefix="", suffix="", old=old, task="rewrite", keep=((0, 3),) * 2_000)
    work = in_pieces(Oracle("oracle", []), request, time.monotonic)
    with contextlib.suppress(StopIteration):
        next(work)
    assert time.process_time() - began < 5


def test_of_a_large_selection_no_more_is_cut_into_tokens_than_the_next_piece_needs(monkeypatch: pytest.MonkeyPatch):
    """Others wait meanwhile."""
    model, longest = Oracle("oracle", []), 0

    def tokenize(text: str) -> list[int]:
        nonlocal longest
        longest = max(longest, len(text))
        return own(text)

    own = model.tokenize
    monkeypatch.setattr(model, "tokenize", tokenize)
    work = in_pieces(model, FillRequest(prefix="", suffix="", old="value = other\n" * 20_000, task="rewrite"))
    next(work)
    assert longest < 20_000
