"""The next edit by an oracle: it knows how the file is to become."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from engine.common.request import Candidate, FillRequest, RecentEdit
from engine.fill.answering import answering
from engine.fill.executor import drive
from engine.fill.next_edit import LIKELY, LOOKED_BACK
from engine.models.base import PIECE
from engine.models.oracle.model import Case, Oracle
from tests.engine.coder import open_model, rows_by_step, write_coder

OLD, NEW = "def scaled(size):", "def scaled(width):"
BEFORE = f"{NEW}\n    return size * 2\n"
AFTER = f"{NEW}\n▮    return width * 2▮\n"


def asked(
    text: str, *cases: str, old: str = OLD, new: str = NEW, language: str = "python", n: int = 1
) -> list[Candidate]:
    """What an oracle that knows `cases` answers whoever made `new` of `old`, which is first in the text."""
    edit, cut = RecentEdit(path="a.py", old=old, new=new, start=0), len(new)
    request = FillRequest(task="next", prefix=text[:cut], suffix=text[cut:], language=language, edits=(edit,), n=n)
    return candidates(request, *cases)


def candidates(request: FillRequest, *cases: str) -> list[Candidate]:
    oracle = Oracle("oracle", [Case(text=case) for case in cases])
    return list(drive(oracle, answering(oracle, request)).candidates)


def applied(text: str, candidate: Candidate) -> str:
    assert candidate.replaces
    start, end = candidate.replaces
    return text[:start] + candidate.text + text[end:]


def test_what_follows_is_found_and_says_how_likely_it_is():
    (candidate,) = asked(BEFORE, AFTER)
    assert applied(BEFORE, candidate) == AFTER.replace("▮", "")
    assert candidate.score >= LIKELY
    assert 0.5 < candidate.confidence < 1


def test_a_place_that_reads_better_as_it_is_stays_so():
    assert asked(BEFORE, BEFORE.replace("    return size * 2", "▮    return size * 2▮")) == []


def test_without_an_edit_nothing_follows():
    assert candidates(FillRequest(task="next", prefix=BEFORE, suffix=""), AFTER) == []


def test_an_edit_that_replaced_nothing_leaves_what_follows_from_the_one_before_it():
    text = f"{BEFORE}\n\nimport os\n"
    renamed = RecentEdit(path="a.py", old=OLD, new=NEW, start=0)
    inserted = RecentEdit(path="a.py", old="", new="import os", start=text.index("import"))
    after = AFTER + text[len(BEFORE) :]
    request = FillRequest(task="next", prefix=NEW, suffix=text[len(NEW) :], language="python")
    (candidate,) = candidates(structs.replace(request, edits=(renamed, inserted)), after)
    assert applied(text, candidate) == after.replace("▮", "")
    assert candidates(structs.replace(request, edits=(renamed, *[inserted] * LOOKED_BACK)), after) == []
    replaced = RecentEdit(path="a.py", old="import sys", new="import os", start=inserted.start)
    assert candidates(structs.replace(request, edits=(renamed, replaced)), after) == []


def test_edits_of_other_files_move_nothing_here():
    edit = RecentEdit(path="b.py", old=OLD, new=NEW)
    assert candidates(FillRequest(task="next", prefix=BEFORE, suffix="", edits=(edit,)), AFTER) == []


def test_what_would_break_the_file_is_not_offered():
    old, new = "first = opened + 1", "first = closed(+ 1)"
    text, broken = f"{new}\nsecond = opened + 2\n", f"{new}\n▮second = closed(+ 2▮\n"
    assert asked(text, broken, old=old, new=new, language="")
    assert asked(text, broken, old=old, new=new) == []


def test_what_nobody_checked_says_so(monkeypatch: pytest.MonkeyPatch):
    assert [each.syntax for each in asked(BEFORE, AFTER)] == ["ok"]
    assert [each.syntax for each in asked(BEFORE, AFTER, language="klingon")] == ["unchecked"]
    monkeypatch.setattr("engine.fill.validation.EDIT_CHECK_MS", 0.0)
    assert [each.syntax for each in asked(BEFORE, AFTER)] == ["unchecked"]


def test_line_ends_stay_as_they_are():
    before, after = (text.replace("\n", "\r\n") for text in (BEFORE, AFTER))
    (candidate,) = asked(before, AFTER, after)
    assert applied(before, candidate) == after.replace("▮", "")


@pytest.mark.parametrize(
    ("old", "new", "rest"),
    [
        (OLD, NEW, "    return 2\n\n\nscaled(▮size▮=3)\n"),
        ("    def f(self, size):", "    def f(self, width):", "        pass\n\na.f(▮size▮='😋')\n"),
        (OLD, NEW, '    """Twice.\n\n    :param ▮size▮: of it\n    """\n'),
        (OLD, NEW, '    """Twice.\n\n    Args:\n        ▮size▮: of it\n    """\n'),
        (OLD, NEW, '    """Twice the `▮size▮`."""\n'),
        (OLD, "def grown(size):", "    pass\n\n\n# See `▮scaled▮`.\n"),
    ],
)
def test_what_calls_and_documents_a_function_follows_its_signature(old: str, new: str, rest: str):
    before, was, behind = rest.split("▮")
    now = {"size": "width", "scaled": "grown"}[was]
    start, end = before.rfind("\n") + 1, (was + behind).index("\n")
    after = f"{new}\n{before[:start]}▮{before[start:]}{now}{(was + behind)[len(was) : end]}▮{(was + behind)[end:]}"
    text = f"{new}\n{before}{was}{behind}"
    (candidate,) = asked(text, after, old=old, new=new)
    assert applied(text, candidate) == after.replace("▮", "")


def test_calls_follow_a_parameter_that_came_or_went_and_nobody_is_asked():
    calls = "\n    pass\n\n\ndef use(unit):\n    scaled(1)\n    scaled('😋')\n"
    first, second = asked(NEW.replace(")", ", unit)") + calls, old=NEW, new=NEW.replace(")", ", unit)"), n=16)
    text = NEW.replace(")", ", unit)") + calls
    assert applied(applied(text, second), first) == text.replace("(1)", "(1, unit)").replace("('😋')", "('😋', unit)")
    assert {each.syntax for each in (first, second)} == {"ok"}
    assert min(first.score, second.score) >= LIKELY
    gone = asked(
        text.replace("width, unit", "width").replace("(1)", "(1, 2)"), old=NEW.replace(")", ", unit)"), new=NEW
    )
    assert [each.text for each in gone] == [""]


def test_calls_that_were_changed_leave_those_that_were_not():
    new = NEW.replace(")", ", unit)")
    calls = [f"    scaled({number})" for number in range(8)]
    text, edits = (
        "\n".join([new, "    pass", "def use(unit):", *calls, ""]),
        [RecentEdit(path="a.py", old=NEW, new=new, start=0)],
    )
    for left in range(8, 0, -1):
        request = FillRequest(task="next", prefix="", suffix=text, language="python", edits=tuple(edits), n=16)
        found = candidates(request)
        assert len(found) == left
        text = applied(text, found[0])
        for number in range(8):
            line = f"    scaled({number}, unit)"
            if line in text and all(line != each.new for each in edits):
                edits.append(RecentEdit(path="a.py", old=f"    scaled({number})", new=line, start=0))
        edits = [structs.replace(each, start=text.index(each.new)) for each in edits]
    assert text.count(", unit)") == 9


def test_a_call_that_would_break_the_file_is_not_changed():
    new = NEW.replace(")", ", unit)")
    assert asked(f"{new}\n    pass\n\n\ndef use(unit):\n    scaled(1 for each in unit)\n", old=NEW, new=new) == []


def test_a_keyword_of_another_function_stays():
    text = f"{NEW}\n    pass\n\n\nother(size=3)\n"
    assert asked(text, text.replace("other(size=3)", "▮other(width=3)▮"), old=OLD, new=NEW) == []


# Of a name with many more places than these, some come with a later answer only.
USES = (
    "    total = size * 2",
    "    return size",
    "    print(f'{size}', size)",
    "    for each in range(size):\n        use(each)",
    "    if size > 3:\n        return None",
    "    values = [size, 1, 2]",
    "    self.size = size",
    "    other = {'size': size}",
    "    larger = lambda: size + 1",
)
BESIDE = ("    # the size of it 😋", "    text = 'size'", "    call(y)", "")
BEHIND = (
    "def other(size):\n    return size\n",
    "size_of = 1\n",
    "class A:\n    def f(self):\n        return self.size\n",
)
_NAME = re.compile(r"(?<![\w.'])size(?!['\w])")


@given(
    st.lists(st.sampled_from(USES), min_size=1, max_size=3),
    st.lists(st.sampled_from(BESIDE), max_size=1),
    st.lists(st.sampled_from(BEHIND), max_size=1),
    st.randoms(use_true_random=False),
)
def test_all_linked_edits_are_right_in_one_answer_and_nothing_else_changes(
    uses: list[str], beside: list[str], behind: list[str], rng: Random
):
    lines = uses + beside
    rng.shuffle(lines)
    body, rest = "\n".join(lines), "\n\n\n" + "\n\n".join(behind)
    text = f"{NEW}\n{body}{rest}"
    # Those of the function whose parameter was renamed: no attributes, strings, comments, and no other function's.
    goal = "\n".join([NEW, *(line if "#" in line else _NAME.sub("width", line) for line in body.split("\n"))]) + rest
    now, wanted = text.split("\n"), goal.split("\n")
    cases = ["\n".join([*now[:at], f"▮{line}▮", *now[at + 1 :]]) for at, line in enumerate(wanted) if line != now[at]]
    for each in sorted(asked(text, *cases, n=16), key=lambda each: each.replaces or (0, 0), reverse=True):
        text = applied(text, each)
    assert text == goal


def test_a_coder_reads_few_tokens_between_two_chances_to_stop(tmp_path: Path):
    """A coder's context begins with what follows a place, so that no place finds it encoded."""
    model = open_model(write_coder(tmp_path / "tiny.gguf"))
    filler = "".join(f"x{number} = {number} + {number}\n" for number in range(400))
    text = f"{NEW}\n    return size * 2\n\n{filler}\nsize = 3\n{filler}"
    edit = RecentEdit(path="a.py", old=OLD, new=NEW, start=0)
    request = FillRequest(task="next", prefix=NEW, suffix=text[len(NEW) :], language="python", edits=(edit,), n=3)
    assert max(rows_by_step(model, request)) <= PIECE
