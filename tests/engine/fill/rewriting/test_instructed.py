"""A selection rewritten as somebody says: what is offered, what is refused, and at what cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from torch import Tensor

from engine.common.errors import BadInput
from engine.common.request import Draft, Filled, FillRequest
from engine.fill.answering import answering
from engine.fill.executor import drive
from engine.fill.rewriting.instructed import instructed
from tests.engine.scripted import Scripted
from tests.engine.talking import Talking

PREFIX = "class Shelf:\n    "
OLD = "def depth(self):\n        return self.value + self.depth"
SUFFIX = "\n\n    def both(self):\n        return self.depth()\n"
SAME = "def depth(self):\n    return self.value + self.depth"


def request(instruction: str = "Return the value.", **more: object) -> FillRequest:
    given = {"prefix": PREFIX, "old": OLD, "suffix": SUFFIX, "language": "python", **more}
    return FillRequest(task="rewrite", instruction=instruction, **given)  # type: ignore[arg-type]


def rewritten(model: Talking, wanted: FillRequest, drafts: list[Draft] | None = None) -> Filled:
    return drive(model, answering(model, wanted), drafts.append if drafts is not None else None)


def said(text: str, closing: str = "\n```") -> Talking:
    return Talking(says=text + closing)


def test_the_answer_stands_in_the_place_of_the_selection_indented_as_that_was() -> None:
    model = said("def depth(self):\n    return self.value")
    filled = rewritten(model, request())
    assert [each.text for each in filled.candidates] == ["def depth(self):\n        return self.value"]
    assert filled.candidates[0].syntax == "ok"
    assert "Return the value." in model.heard[0][-1]["content"]


def test_what_stays_is_checked_and_not_written() -> None:
    body = "".join(f"    value = self.depth + {at}\n" for at in range(40))
    old = f"def depth(self):\n{body}    return self.value"
    filled = rewritten(said(old.replace("+ 20", "+ 99")), request(prefix="", old=old, suffix="\n"))
    tokens = filled.candidates[0].tokens
    assert "+ 99" in filled.candidates[0].text
    assert tokens > 200
    assert filled.forwards < tokens / 8


def test_it_is_shown_as_it_comes_with_what_is_left_of_the_old_text() -> None:
    drafts: list[Draft] = []
    rewritten(said("def depth(self):\n    return self.value"), request(), drafts)
    assert drafts[0].text.startswith("def depth(self):\n        return")
    assert all(draft.settled <= len(draft.text) for draft in drafts)
    assert drafts[-1].text == "def depth(self):\n        return self.value"


def test_the_old_text_is_answered_where_the_model_changes_nothing() -> None:
    filled = rewritten(said(SAME), request(n=1))
    assert [each.text for each in filled.candidates] == [OLD]


@pytest.mark.parametrize(
    "bad",
    ["def depth(self:\n    return", "def other(self):\n    return 1", "I'm sorry, but I can't do that."],
    ids=["broken", "a name is lost", "prose"],
)
def test_what_is_not_fit_is_not_offered(bad: str) -> None:
    assert rewritten(said(bad), request()).candidates == ()


def test_prose_before_a_fence_is_passed_over_and_not_shown() -> None:
    drafts: list[Draft] = []
    model = said("Here is the code:\n```python\ndef depth(self):\n    return self.value")
    filled = rewritten(model, request(n=1), drafts)
    assert [each.text for each in filled.candidates] == ["def depth(self):\n        return self.value"]
    assert drafts
    assert not [draft.text for draft in drafts if "```" in draft.text or "Here is" in draft.text]


PRINTS = {"prefix": "def f():\n    x = 1\n", "old": "    print(x)\n    print(2)\n", "suffix": "    return x\n"}


@pytest.mark.parametrize("answer", ["```", "\n```", ""])
@pytest.mark.parametrize(("instruction", "texts"), [("Remove the prints.", [""]), ("Make it fast.", [])])
def test_an_empty_answer_is_one_where_removal_is_asked_for(answer: str, instruction: str, texts: list[str]) -> None:
    filled = rewritten(Talking(says=answer, sure=1.0), request(instruction, n=1, **PRINTS))
    assert [(each.text, each.syntax) for each in filled.candidates] == [(text, "ok") for text in texts]


def test_what_is_asked_to_go_as_a_whole_goes_without_the_model() -> None:
    model = said("nothing")
    filled = rewritten(model, request("Please remove this.", **PRINTS))
    assert [each.text for each in filled.candidates] == [""]
    assert not model.trees


def test_what_is_kept_stays_when_all_goes() -> None:
    at = PRINTS["old"].index("    print(2)")
    filled = rewritten(said("nothing"), request("delete these lines", keep=((at, len(PRINTS["old"])),), **PRINTS))
    assert [each.text for each in filled.candidates] == ["    print(2)\n"]


def test_kept_lines_stay_as_they_are_or_all_of_it_does() -> None:
    """They begin where the selection's first line did; where they stood further left the model is asked."""
    text = {"prefix": "function f() {\n", "old": "    if (a) {\n        x();\n    }\n", "suffix": "}\n", "language": ""}
    for kept, texts in (("    }\n", ["    }\n"]), ("        x();\n", ["        x();\n"])):
        at = text["old"].index(kept)
        work = request("delete these lines", keep=((at, at + len(kept)),), **text)
        assert [each.text for each in rewritten(said("nothing"), work).candidates] == texts
    text = {
        "prefix": "if (a) {\n",
        "old": "        x();\n    }\n    keep();\n    y();\n",
        "suffix": "\n",
        "language": "",
    }
    at, end = text["old"].index("    }"), text["old"].index("    y")
    work = request("delete these lines", keep=((at, end),), **text)
    assert all("        }" not in each.text for each in rewritten(said("nothing"), work).candidates)


def test_what_is_broken_elsewhere_keeps_nothing_from_going() -> None:
    text = {"prefix": "def g(:\n\ndef f(value):\n", "old": "    show(value)\n", "suffix": "    return 1\n"}
    model = said("nothing")
    assert [each.text for each in rewritten(model, request("remove this", **text)).candidates] == [""]
    assert not model.trees


def test_only_what_the_model_says_first_may_be_nothing() -> None:
    """Not another way where its answer is doubtful, as it names what is not there."""
    text = {"prefix": "def f(x):\n", "old": "    z = list(x)\n", "suffix": "    return z\n"}
    model = Talking(says="z = uniq(x)\n```", instead=(0, "```"), sure=0.6)
    found = rewritten(model, request("Remove the duplicates", n=3, **text)).candidates
    assert "" not in [each.text for each in found]
    assert found


def test_what_the_file_needs_does_not_go() -> None:
    only = {"prefix": "def f():\n", "old": "    return 1\n", "suffix": "\n\nf()\n"}
    filled = rewritten(said("pass"), request("remove it", n=1, **only))
    assert [each.text for each in filled.candidates] == ["    pass\n"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_go_leave_no_blank_line(end: str) -> None:
    lines = {name: text.replace("\n", end) for name, text in PRINTS.items()}
    (gone,) = rewritten(said("nothing"), request("remove this", **lines)).candidates
    assert lines["prefix"] + gone.text + lines["suffix"] == f"def f():{end}    x = 1{end}    return x{end}"


def test_another_way_is_tried_where_the_first_is_not_fit() -> None:
    broken, at = "def depth(self):\n    return self.value)", len("def depth(self):\n    return self.value")
    model = Talking(says=f"{broken}\n```", instead=(at, "\n```"))
    filled = rewritten(model, request())
    assert [each.text for each in filled.candidates] == ["def depth(self):\n        return self.value"]


def test_the_selection_is_begun_with_where_the_surroundings_are_rewritten_instead() -> None:
    """By a model that goes on with the selection where it has begun with it."""

    class Astray(Talking):
        def _logits(self, written: Sequence[int]) -> Tensor:
            told = f"{PREFIX.rstrip()}\n...\n    def both(self):\n        return 2\n```"
            begun = self.detokenize(written).startswith("d")
            return super()._logits(written) if begun else Scripted(says=told)._logits(written)

    model, drafts = Astray(says="def depth(self):\n    return self.value\n```"), list[Draft]()
    filled = rewritten(model, request("Return the value, not both.", n=1), drafts)
    assert [each.text for each in filled.candidates] == ["def depth(self):\n        return self.value"]
    # What is said of the surroundings stands beside the selection, not in its place.
    assert all(draft.text.startswith("def depth(self)") for draft in drafts)


def test_several_are_offered_the_likeliest_first() -> None:
    text = "def depth(self):\n    return self.value"
    model = Talking(says=f"{text}\n```", instead=(len(text), " + 1\n```"), sure=0.6)
    filled = rewritten(model, request(n=2))
    assert [each.text.rpartition("return ")[2] for each in filled.candidates] == ["self.value", "self.value + 1"]


def test_a_kept_span_stays() -> None:
    at = OLD.index("return")
    model = said("def depth(self, value):\n    return value")
    filled = rewritten(model, request(keep=((at, len(OLD)),)))
    assert [each.text for each in filled.candidates] == [OLD.replace("(self)", "(self, value)", 1)]


@pytest.mark.parametrize(
    ("prefix", "old", "new"),
    [
        ("class Shelf:\n", f"    {OLD}", "    def depth(self):\n        return self.value"),
        ("class Shelf:\n", f"    {OLD}\n", "    def depth(self):\n        return self.value\n"),
        ("class Shelf:", f"\n\n    {OLD}\n", "\n\n    def depth(self):\n        return self.value\n"),
    ],
)
def test_blank_ends_of_a_selection_stay(prefix: str, old: str, new: str) -> None:
    """As of whole lines, whose indentation is a part of the selection."""
    drafts: list[Draft] = []
    keep = (old.index("def"), old.index("("))
    filled = rewritten(
        said("def depth(self):\n    return self.value"), request(prefix=prefix, old=old, keep=(keep,)), drafts
    )
    assert [each.text for each in filled.candidates] == [new]
    assert drafts[-1].text == new.rstrip("\n") + "\n" * (len(new) - len(new.rstrip("\n")))
    assert all(draft.settled <= len(draft.text) for draft in drafts)


def test_a_definition_that_is_said_twice_is_doubtful() -> None:
    twice = "def depth(self):\n    return self.value\n\ndef depth(self):\n    return self.value"
    once = "def depth(self):\n    return self.value"
    model = Talking(says=f"{twice}\n```", instead=(len(once), "\n```"), sure=0.6)
    filled = rewritten(model, request(n=1))
    assert [each.text for each in filled.candidates] == ["def depth(self):\n        return self.value"]


def test_line_ends_stay_as_they_are() -> None:
    old = OLD.replace("\n", "\r\n")
    model = said("def depth(self):\n    return self.value")
    filled = rewritten(model, request(prefix=PREFIX.replace("\n", "\r\n"), old=old, suffix="\r\n"))
    assert filled.candidates[0].text == "def depth(self):\r\n        return self.value"


def test_it_ends_at_its_deadline() -> None:
    model = said("value " * 3000)
    filled = rewritten(model, request(deadline_ms=50.0))
    assert filled.candidates == ()


def test_what_was_cut_off_is_no_answer_though_it_parses() -> None:
    short = "def depth(self):\n    return 1"
    model = Talking(says=f"{short}\n```")
    now = iter(0.001 * at for at in range(10_000))
    for deadline_ms in range(1, 40):
        filled = drive(model, instructed(model, request(deadline_ms=float(deadline_ms)), lambda: next(now)))
        assert {each.text.rpartition("return ")[2] for each in filled.candidates} <= {"1"}
    long = Talking(says="value = 1\n" * 400)
    assert rewritten(long, request(old="value = 2", prefix="", suffix="\n")).candidates == ()


def test_unlikely_others_are_not_written() -> None:
    text = "def depth(self):\n    return self.value"
    model = Talking(says=f"{text}\n```", instead=(len(text), " + 1\n```"), sure=0.9999)
    once = Talking(says=f"{text}\n```")
    rewritten(once, request(n=1))
    assert len(rewritten(model, request(n=3)).candidates) == 1
    assert len(model.trees) == len(once.trees)


def test_it_is_given_up_at_once() -> None:
    work = answering(said(SAME), request())
    next(work)
    work.close()


@pytest.mark.parametrize("old", ["  \n", "value = 1\n" * 100_001])
def test_what_can_not_be_rewritten_is_an_error(old: str) -> None:
    with pytest.raises(BadInput):
        rewritten(said(SAME), request(old=old))


def test_an_instruction_that_takes_long_to_read_is_an_error_before_it_is_read() -> None:
    model = said(SAME)
    with pytest.raises(
        BadInput, match=r"^The instruction has 4,001 characters; up to 4,000 are read: say it shorter\.$"
    ):
        rewritten(model, request("x" * 4001))
    assert not model.heard
    assert rewritten(model, request("x" * 4000)).candidates


def test_a_selection_that_is_too_long_for_the_model_is_an_error() -> None:
    with pytest.raises(BadInput, match="select less"):
        rewritten(said(SAME), request(old="value = 1\n" * 2000))


def test_without_an_instruction_it_is_told_to_make_it_better() -> None:
    model = said(SAME)
    rewritten(model, request(instruction=""))
    assert "Improve" in model.heard[0][-1]["content"]
