"""Where an answer ends, and what of a draft can be sent."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.common.request import Candidate, Draft
from engine.server.http.endings import Endings, Settling, completed


@pytest.mark.parametrize(
    ("endings", "text", "left"),
    [
        (Endings(), "a\nb", ("a\nb", "eos", "")),
        (Endings(stop=("c", "b")), "abc", ("a", "word", "b")),
        (Endings(stop=("x",)), "abc", ("abc", "eos", "")),
        (Endings(indent=4), "a\n    b\n\n    c\n  d\n    e", ("a\n    b\n\n    c", "limit", "")),
        (Endings(indent=1), "a\n\tb\nc", ("a\n\tb", "limit", "")),
        (Endings(indent=4), "a\n", ("a\n", "eos", "")),
        (Endings(indent=2, stop=("c",)), "a\nb\nc", ("a", "limit", "")),
        (Endings(indent=2, stop=("a",)), "a\nb", ("", "word", "a")),
        (Endings(stop=("\n\n",), line_end="\r\n"), "a\r\nb\r\n\r\nc", ("a\r\nb", "word", "\n\n")),
        (Endings(indent=4, line_end="\r\n"), "    a\r\n\r\n    b\r\nc", ("    a\r\n\r\n    b", "limit", "")),
    ],
)
def test_the_first_ending_counts(endings: Endings, text: str, left: tuple[str, str, str]):
    assert endings.cut(text) == left


TEXTS = st.text(alphabet="ab \n\r\t", max_size=12)
ENDINGS = st.builds(
    lambda stop, indent, line_end: Endings(stop=tuple(filter(None, stop)), indent=indent, line_end=line_end),
    st.lists(st.text(alphabet="ab\n", max_size=3), max_size=2),
    st.integers(0, 3),
    st.sampled_from(["\n", "\r\n", "\r"]),
)


@pytest.mark.parametrize("telling", [256, 1])
@example(Endings(stop=("\n", "a\n\n")), "a\n", "\n")
@given(ENDINGS, TEXTS, TEXTS)
def test_what_is_ready_stays_whatever_follows(telling: int, endings: Endings, text: str, more: str):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.server.http.endings._TELLING", telling)
        assert endings.cut(text + more)[0].startswith(endings.ready(text))


def test_a_word_of_any_length_is_waited_for():
    endings = Endings(stop=("ab" * 1000,))
    assert endings.ready("xab") == "x"
    assert endings.ready("xabc") == "xabc"
    assert endings.ready("x" + "ab" * 900) == "x"
    assert endings.ready("x" + "ab" * 999 + "a") == "x"


@pytest.mark.processor_s(10)
@pytest.mark.parametrize(("text", "ready"), [("y" + "x" * 20_000, "y"), ("xy" * 10_000, "xy" * 10_000)])
def test_a_long_word_costs_no_more_than_a_short_one(text: str, ready: str):
    endings = Endings(stop=("x" * 200_000, *("x" * 20_000 + str(n) for n in range(63))))
    tracemalloc.start()
    assert endings.ready(text) == ready
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_tokens_end_with_their_text():
    candidate = Candidate(
        text="one two", tokens=3, confidence=0.5, score=0, token_confidence=(0.1, 0.2, 0.3), token_ends=(3, 4, 7)
    )
    whole = completed(candidate, Endings(), 96)
    assert (whole.pieces, whole.confidence) == (("one", " ", "two"), (0.1, 0.2, 0.3))
    assert (whole.tokens, whole.reason) == (3, "eos")
    assert completed(candidate, Endings(), 3).reason == "limit"
    cut = completed(candidate, Endings(stop=("ne t",)), 3)
    assert (cut.text, cut.tokens, cut.pieces, cut.confidence, cut.reason, cut.word) == (
        *("o", 1, ("o",), (0.1,)),
        *("word", "ne t"),
    )


def draft(text: str, settled: int) -> Draft:
    return Draft(step=0, text=text, settled=settled)


def test_what_two_drafts_in_a_row_agree_on_is_sent_once():
    settling = Settling(Endings())
    assert settling.more(draft("abcd", 3)) == ""
    assert settling.more(draft("abxd", 4)) == "ab"
    assert settling.more(draft("ab", 1)) == ""
    assert settling.more(draft("abxy", 4)) == ""
    assert settling.more(draft("abxy", 4)) == "xy"
    assert settling.rest("abxyz") == "z"


def test_what_turns_out_otherwise_is_not_gone_on_with():
    settling = Settling(Endings())
    settling.more(draft("ab", 2))
    assert settling.more(draft("ab", 2)) == "ab"
    assert settling.rest("xyz") == ""


def test_a_stop_word_is_not_sent_in_part_and_line_ends_are_those_of_the_file():
    settling = Settling(Endings(stop=("end",), line_end="\r\n"))
    settling.more(draft("a\nbe", 4))
    assert settling.more(draft("a\nben", 5)) == "a\r\nb"
    assert settling.more(draft("a\nbend", 6)) == ""
    assert settling.rest("a\r\nb") == ""


def test_what_may_be_the_text_after_the_gap_waits_for_the_end():
    settling = Settling(Endings(follows="}}</li>"))
    drafts = ["item.na", "item.na", "item.name }", "item.name }", "item.name }}", "item.name }}"]
    sent = [settling.more(Draft(step=at, text=text, settled=len(text))) for at, text in enumerate(drafts)]
    assert sent == ["", "item.na", "", "me", "", ""]
    assert settling.rest("item.name") == ""
    assert settling.rest("item.name }} or {{ a") == " }} or {{ a"
