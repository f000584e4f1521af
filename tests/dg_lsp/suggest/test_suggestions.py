"""Typing along: a suggestion holds exactly as long as the document can still become what was suggested."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.suggest.suggestions import REMEMBERED, Remainder, Suggestion, SuggestionCache

code = st.text(st.sampled_from('ab(){}"; \n'), max_size=12)


def suggested(marked: str, *, id: int = 1) -> Suggestion:
    """`before▮answer▮after`: the answer was suggested between the two."""
    before, answer, after = marked.split("▮")
    return Suggestion(id=id, base=before + after, start=len(before), end=len(before), text=answer, confidence=0.9)


def remainder(suggestion: Suggestion, marked: str) -> Remainder | None:
    """What is left of it at the cursor ▮."""
    return suggestion.remainder(marked.replace("▮", ""), marked.index("▮"))


def check_rest(suggestion: str, document: str, expected: str | None, *, swallowed: int = 0) -> None:
    found = remainder(suggested(suggestion), document)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.text, found.end - found.cursor) == (expected, swallowed)


def outcome(suggestion: Suggestion) -> str:
    return suggestion.base[: suggestion.start] + suggestion.text + suggestion.base[suggestion.end :]


@st.composite
def suggestions(draw: st.DrawFn) -> Suggestion:
    base = draw(code)
    start = draw(st.integers(0, len(base)))
    end = draw(st.integers(start, len(base)))
    return Suggestion(id=1, base=base, start=start, end=end, text=draw(code), confidence=0.5)


@given(suggestions(), code, st.data())
def test_whatever_is_served_leads_to_what_was_suggested(suggestion, text, data):
    cursor = data.draw(st.integers(0, len(text)))
    found = suggestion.remainder(text, cursor)
    if found is not None:
        assert text[:cursor] + found.text + text[found.end :] == outcome(suggestion)
        assert "\n" not in text[found.cursor : found.end]
        assert found.start <= cursor
        added = found.up_to_cursor(text)
        if added is not None:
            assert text[:cursor] + added.text + text[cursor:] == outcome(suggestion)
            assert added.text


@given(suggestions(), st.data())
def test_typing_along_serves_the_rest_and_undoing_it_the_whole_again(suggestion, data):
    before, after = suggestion.base[: suggestion.start], suggestion.base[suggestion.end :]
    for count in [*range(len(suggestion.text)), *reversed(range(len(suggestion.text)))]:
        found = suggestion.remainder(before + suggestion.text[:count] + after, len(before) + count)
        assert found is not None
        assert found.text == suggestion.text[count:]


@given(suggestions())
def test_a_suggestion_typed_to_its_end_is_finished(suggestion):
    assert suggestion.is_finished(outcome(suggestion))
    assert suggestion.remainder(outcome(suggestion), suggestion.outcome_end) is None


@given(suggestions(), code)
def test_no_other_text_finishes_it(suggestion, text):
    assert suggestion.is_finished(text) == (text == outcome(suggestion))


@given(suggestions(), st.data())
def test_text_taken_back_before_a_suggestion_becomes_part_of_it(suggestion, data):
    cursor = data.draw(st.integers(0, suggestion.start))
    found = suggestion.remainder(suggestion.base[:cursor] + suggestion.base[suggestion.end :], cursor)
    taken = suggestion.base[cursor : suggestion.start]
    # What was taken with two line breaks is not typed again.
    assert (found.text if found else "") == (taken + suggestion.text if taken.count("\n") <= 1 else "")
    if found:
        assert found.reaches_back == (cursor < suggestion.start)


@pytest.mark.parametrize(
    ("suggestion", "document", "expected", "swallowed"),
    [
        ("x = ▮print(y)▮\n", "x = print(▮)\n", "y)", 1),
        ('x = ▮print("y")▮\n', 'x = print("▮")\n', 'y")', 2),
        ("▮if (x) {\n  y();\n}▮\n", "if (x) {▮}\n", "\n  y();\n}", 1),
        ("▮if (x) {\n  y();\n}▮\n", "if (x) {\n  ▮\n}\n", "y();", 0),
        ("x = ▮[]▮", "x = [▮]", None, 0),
        ("x = ▮abc▮", "x = ab▮", "c", 0),
        ("x = ▮abc▮", "x = ax▮", None, 0),
        ("x = ▮abc▮", "x = a▮b", None, 0),
        ("x = ▮abc▮\ny", "x = a▮\nz", None, 0),
        ("x = '😋' + ▮字😋▮", "x = '😋' + 字▮", "😋", 0),
        ("▮▮", "▮", None, 0),
    ],
)
def test_examples(suggestion, document, expected, swallowed):
    check_rest(suggestion, document, expected, swallowed=swallowed)


@pytest.mark.parametrize(
    ("suggestion", "document", "expected"),
    [
        ("x = ▮f(a, b)▮\n", "x = f(a▮\n", ", b)"),
        ("x = ▮f(a, b)▮\n", "x = f(a▮)\n", ", b"),
        ("▮if f(a):\n  g()▮\n", "if f(▮):\n", None),
    ],
)
def test_what_is_behind_the_cursor_can_be_kept_where_the_rest_ends_with_it(suggestion, document, expected):
    added = remainder(suggested(suggestion), document).up_to_cursor(document.replace("▮", ""))
    assert (added.text if added else None) == expected


def test_the_newest_suggestion_that_holds_comes_first_and_none_twice():
    shelf = SuggestionCache()
    for id, answer in enumerate(["one", "two", "one", "three"]):
        shelf.put(suggested(f"x = ▮{answer}▮", id=id))
    assert [(found.text, found.suggestion.id) for found in shelf.remainders("x = ", 4)] == [
        ("three", 3),
        ("one", 0),
        ("two", 1),
    ]
    assert [found.text for found in shelf.remainders("x = t", 5)] == ["hree", "wo"]


def test_only_the_latest_are_remembered():
    shelf = SuggestionCache()
    for id in range(REMEMBERED + 1):
        shelf.put(suggested(f"▮{id}▮", id=id))
    assert len(list(shelf.remainders("", 0))) == REMEMBERED


def test_the_same_claim_is_remembered_once():
    shelf = SuggestionCache()
    first = shelf.put(suggested("x = ▮one▮", id=1))
    assert shelf.put(suggested("x = ▮one▮", id=2)) is first
    assert [found.suggestion for found in shelf.remainders("x = ", 4)] == [first]


def test_the_shelf_knows_which_suggestion_the_document_became():
    shelf = SuggestionCache()
    for id, answer in enumerate(["one", "two"]):
        shelf.put(suggested(f"x = ▮{answer}▮", id=id))
    assert shelf.finished("x = one").id == 0
    assert shelf.finished("x = on") is None


@pytest.mark.parametrize(
    ("suggestion", "document", "guess"),
    [
        ("x = ▮compute(first, second)▮\n", "x = calc▮\n", "(first, second)"),
        ("x = ▮compute(first, second)▮\n", "x = calc(▮\n", "first, second)"),
        ("x = ▮compute(first, second)▮\n", "x = calc(f▮\n", "irst, second)"),
        ("x = ▮compute(first, second)▮\n", "x = compute(other▮\n", ", second)"),
        ("x = ▮compute(first, second)▮\n", "x = compute[▮\n", ""),
        ("x = ▮compute(first)▮\n", "x = compute(first)▮\n", ""),
        ("x = ▮compute(first)▮\n", "y = calc▮\n", ""),
        ("x = ▮compute(first)▮\n", "x▮\n", ""),
    ],
)
def test_what_typing_diverged_from_is_a_guess(suggestion, document, guess):
    assert suggested(suggestion).guess(document.replace("▮", ""), document.index("▮")) == guess


@given(suggestions(), code, st.data())
def test_a_guess_is_the_end_of_what_was_suggested(suggestion, text, data):
    assert suggestion.text.endswith(suggestion.guess(text, data.draw(st.integers(0, len(text)))))


def test_only_the_newest_suggestion_leads_to_guesses():
    shelf = SuggestionCache()
    assert shelf.guess("x = ", 4) == ""
    shelf.put(suggested("x = ▮one(1)▮", id=1))
    shelf.put(suggested("x = ▮two(2)▮", id=2))
    assert shelf.guess("x = three", 9) == "(2)"


def test_a_suggestion_far_behind_the_cursor_is_of_no_use_here():
    lines = 'say("\\"", a)\n' * 3
    near = Suggestion(id=1, base=f"{lines}b = ", start=len(lines) + 4, end=len(lines) + 4, text="c", confidence=1)
    assert near.remainder(lines[:-1], len(lines) - 1) is not None
    assert near.remainder(lines[:5], 5) is None
    wide = "x" * 1000
    far = Suggestion(id=1, base=wide, start=1000, end=1000, text="c", confidence=1)
    assert far.remainder(wide[:900], 900) is not None
    assert far.remainder(wide[:5], 5) is None
