"""The index against a list of texts that is searched from end to end."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dg_lsp.workspace import text_index
from dg_lsp.workspace.text_index import BLOCK_LINES, MAX_LINES, IndexQuery, Surroundings, TextIndex

NAMES = ["a.py", "b.py", "dir/c.py", "d.js"]
LINES = ["x = call(one)", "    y = call(two)", "", "return x", "  ", "z = {", "}"]
TEXTS = st.lists(st.sampled_from(LINES), max_size=12).map("\n".join)


def around(line_before: str, name: str = "gap.py", head: str = "") -> Surroundings:
    return Surroundings(name=name, before=[line_before], head=head, after=[])


def found(index: TextIndex, where: Surroundings) -> set[tuple[str, int]]:
    places = [index.place(line) for _, line in index.nearest(IndexQuery.of(where))]
    return {(place.name, place.number) for place in places if place}


def behind(texts: dict[str, str], line: str) -> set[tuple[str, int]]:
    """The model: non-blank lines that have `line` before them, blank ones left out, in texts of Python."""
    expected = set[tuple[str, int]]()
    for name, text in texts.items():
        lines = [(number, each) for number, each in enumerate(text.split("\n"), 1) if each.strip()]
        if name.endswith(".py"):
            pairs = pairwise(lines)
            expected |= {(name, number) for (_, before), (number, _) in pairs if before.strip() == line.strip()}
    return expected


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.none() | TEXTS), max_size=12), st.sampled_from(LINES))
@settings(max_examples=60)
def test_it_holds_what_a_list_of_texts_would(edits: list[tuple[str, str | None]], line: str):
    # Of fewer bits two places would be taken for one once in a hundred runs.
    index, texts = TextIndex(bucket_bits=12), dict[str, str]()
    for name, text in edits:
        if text is None:
            index.remove(name)
            texts.pop(name, None)
        else:
            index.add(name, text)
            texts[name] = text
    assert set(index.names()) == {name for name, text in texts.items() if text.strip()}
    if line.strip():
        expected = behind(texts, line)
        alike = {at for other in LINES if other.strip() for at in behind(texts, other)}
        assert expected <= found(index, around(line)) <= alike
    for name in index.names():
        kept = [each if each.strip() else "" for each in texts[name].split("\n")]
        assert index.text(name) == "\n".join(kept)


def test_nothing_is_kept_of_a_text_that_was_removed():
    index = TextIndex()
    before = index.nbytes
    index.add("a.py", "one = 1\n" * 1000)
    full = index.nbytes
    index.remove("a.py")
    assert found(index, around("one = 1")) == set()
    assert index.place(1) is None
    assert index.dead_lines == 1000
    assert before < index.nbytes < full
    assert not any(index._blocks)
    assert not any(index._line_texts)


def test_a_place_is_read_with_the_lines_around_it_across_blocks():
    index = TextIndex()
    lines = [f"line{number} = {number}" for number in range(2 * BLOCK_LINES)]
    lines.insert(3, "")
    index.add("a.py", "\n".join(lines))
    for at in (0, 5, BLOCK_LINES - 1, BLOCK_LINES, BLOCK_LINES + 1, 2 * BLOCK_LINES - 1):
        ((_, line),) = [
            (score, line)
            for score, line in index.nearest(IndexQuery.of(around(f"line{at} = {at}")))
            if (place := index.place(line)) and place.line == f"line{at + 1} = {at + 1}"
        ] or [(0, None)]
        if at == 2 * BLOCK_LINES - 1:
            assert line is None
            continue
        place = index.place(line)
        number = lines.index(f"line{at + 1} = {at + 1}")
        assert place.number == number + 1
        assert place.before == "".join(f"{each}\n" for each in lines[:number])[-len(place.before) :]
        assert place.after == "".join(f"\n{each}" for each in lines[number + 1 :])[: len(place.after)]
        assert place.before.count("\n") >= min(4, number)
        assert place.after.count("\n") >= min(16, len(lines) - number - 1)


def test_a_place_in_a_line_is_found_by_the_tokens_before_it():
    index = TextIndex()
    index.add("a.py", "first = 1\nother = self.check(first)\n")
    index.add("b.py", "second = 2\nother = self.watch(first)\n")
    assert found(index, around("elsewhere += 1", head="x = self.check(")) == {("a.py", 2)}
    assert found(index, around("elsewhere += 1", name="gap.js", head="x = self.check(")) == set()


def test_a_text_that_has_no_room_is_left_out(monkeypatch):
    monkeypatch.setattr(text_index, "MAX_LINES", 10)
    index = TextIndex()
    assert index.add("a.py", "one = 1\n" * 6)
    assert not index.add("b.py", "two = 2\n" * 6)
    assert index.names() == ["a.py"]
    assert MAX_LINES.bit_length() - 1 + text_index._SIGNATURE_BITS == 32
