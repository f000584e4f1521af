"""What the model sees of other documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem

from dg_lsp.documents.documents import Documents
from dg_lsp.suggest.context import CHARS_BY_TOKEN, FAR_LINES, Surroundings, closeness, read

HERE = "file:///w/app/main.py"
MAIN = "from app import shapes\n\ndef area_of(circle):\n    return circle.radius\n"


def editor(**others: str) -> tuple[Documents, Surroundings]:
    """`folder__name="text"` opens folder/name.py."""
    documents = Documents()
    opened(documents, HERE, MAIN)
    for name, text in others.items():
        opened(documents, f"file:///w/{name.replace('__', '/')}.py", text)
    return documents, Surroundings(documents, lambda _: True)


def opened(documents: Documents, uri: str, text: str) -> None:
    documents.open(TextDocumentItem(uri=uri, language_id="python", version=1, text=text))


def edited(documents: Documents, uri: str, text: str) -> None:
    documents.change(uri, documents.get(uri).version + 1, [TextDocumentContentChangeWholeDocument(text=text)])


def chosen(surroundings: Surroundings, documents: Documents, *, cursor: int = 0, max_tokens: int = 1000) -> list[str]:
    return [held.path for held in surroundings.snippets(documents.get(HERE), cursor, max_tokens)]


@pytest.mark.parametrize(
    ("closer", "farther"),
    [
        ({"lib__shapes": "one = 1\n"}, {"lib__other": "one = 1\n"}),
        ({"app__other": "one = 1\n"}, {"lib__other": "one = 1\n"}),
        ({"lib__one": "class circle: radius = 1\n"}, {"lib__two": "class square: side = 1\n"}),
        ({"lib__test": "from app import main\n"}, {"lib__test": "from app import niam\n"}),
    ],
    ids=["imported", "same folder", "shared names", "imports this"],
)
def test_closer_documents_weigh_more(closer, farther):
    def weight(other):
        documents, _ = editor(**other)
        return closeness(read(documents.get(HERE)), read(documents.others(HERE)[0]))

    assert weight(closer) > weight(farther)


def test_the_closest_text_fits_the_budget_first():
    documents, surroundings = editor(lib__far="far = 1\n" * 20, lib__shapes="class circle: radius = 1\n")
    assert chosen(surroundings, documents, max_tokens=20) == ["shapes.py"]
    assert chosen(surroundings, documents, max_tokens=200) == ["far.py", "shapes.py"]
    assert chosen(surroundings, documents, max_tokens=0) == []


@given(st.lists(st.text(st.sampled_from("ab_\n xyz"), max_size=4000), max_size=4), st.integers(0, 3000))
def test_snippets_never_exceed_the_budget_and_hold_only_text_that_is_there(texts, max_tokens):
    documents, surroundings = editor(**{f"lib__n{at}": text for at, text in enumerate(texts)})
    snippets = surroundings.snippets(documents.get(HERE), 0, max_tokens)
    joints = 10 * len(texts)
    assert sum(len(held.text) for held in snippets) <= max_tokens * CHARS_BY_TOKEN + joints
    for held in snippets:
        whole = documents.get(f"file:///w/lib/{held.path}").text
        assert all(line in whole for line in held.text.splitlines())


def test_a_long_document_gives_the_part_that_shares_names_with_the_cursor_s():
    filler = "".join(f"def filler_{at}(): pass\n\n" for at in range(200))
    documents, surroundings = editor(
        lib__shapes=f"{filler}class Circle:\n    def area_of(circle): circle.radius\n\n{filler}"
    )
    (snippet,) = surroundings.snippets(documents.get(HERE), 0, 500)
    assert "circle.radius" in snippet.text


def test_typing_here_keeps_the_choice_and_its_order():
    documents, surroundings = editor(lib__b="class circle: radius = 1\n", app__a="class circle: area_of = 1\n")
    before = surroundings.snippets(documents.get(HERE), 0, 1000)
    edited(documents, HERE, MAIN + "class square: side = 1\n")
    assert surroundings.snippets(documents.get(HERE), len(MAIN), 1000) is before


def test_a_change_elsewhere_chooses_anew_and_what_is_edited_comes_last():
    documents, surroundings = editor(app__a="class circle: area_of = 1\n", lib__b="class circle: radius = 1\n")
    assert chosen(surroundings, documents) == ["a.py", "b.py"]
    edited(documents, "file:///w/app/a.py", "class circle: area_of = 2\n")
    assert chosen(surroundings, documents) == ["b.py", "a.py"]
    assert surroundings.snippets(documents.get(HERE), 0, 1000)[1].text == "class circle: area_of = 2\n"


def test_a_document_that_is_opened_again_is_read_again_whatever_its_version():
    documents, surroundings = editor(lib__shapes="class circle: radius = 1\n", app__other="other = 1\n")
    uri = "file:///w/lib/shapes.py"
    for text in ("class circle: radius = 2\n", "class circle: radius = 3\n"):
        surroundings.snippets(documents.get(HERE), 0, 1000)
        documents.forget(uri)
        opened(documents, uri, text)
        assert text in [held.text for held in surroundings.snippets(documents.get(HERE), 0, 1000)]


def test_a_far_jump_chooses_anew():
    far = FAR_LINES * 3
    parts = "".join(f"def {name}(): pass\n" + "\n" * 1200 for name in ("left", "right"))
    documents, surroundings = editor(lib__parts=parts)
    edited(documents, HERE, "left()\n" + "\n" * far + "right()\n")
    (first,) = surroundings.snippets(documents.get(HERE), 0, 420)
    (second,) = surroundings.snippets(documents.get(HERE), len(documents.get(HERE).text), 420)
    assert "left" in first.text
    assert "right" in second.text


def test_documents_that_may_not_be_shown_are_left_out():
    documents, _ = editor(lib__shapes="class circle: radius = 1\n", lib__secret="class circle: radius = 2\n")
    surroundings = Surroundings(documents, lambda other: "secret" not in other.uri)
    assert chosen(surroundings, documents) == ["shapes.py"]


def test_cells_of_one_notebook_see_each_other():
    documents = Documents()
    cells = [f"vscode-notebook-cell:/w/n.ipynb#W{at}" for at in range(2)]
    opened(documents, cells[0], "radius = 1\n")
    opened(documents, cells[1], "print(radius)\n")
    (snippet,) = Surroundings(documents, lambda _: True).snippets(documents.get(cells[1]), 0, 100)
    assert snippet.text == "radius = 1\n"
