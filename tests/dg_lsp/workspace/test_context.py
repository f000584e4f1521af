"""What the model sees of other documents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem

from dg_lsp.config.settings import ContextSettings, Settings
from dg_lsp.documents.documents import REMEMBERED_AFTER_CLOSING, Documents, Policy, Snapshot
from dg_lsp.workspace.context import CHARS_BY_TOKEN, FAR_LINES, ContextSelector, closeness, read
from dg_lsp.workspace.history import EditHistory

HERE = "file:///w/app/main.py"
MAIN = "from app import shapes\n\ndef area_of(circle):\n    return circle.radius\n"


def editor(**others: str) -> tuple[Documents, ContextSelector]:
    """`folder__name="text"` opens folder/name.py."""
    documents = Documents()
    opened(documents, HERE, MAIN)
    for name, text in others.items():
        opened(documents, f"file:///w/{name.replace('__', '/')}.py", text)
    return documents, ContextSelector(documents, EditHistory(documents))


def opened(documents: Documents, uri: str, text: str) -> None:
    documents.open(TextDocumentItem(uri=uri, language_id="python", version=1, text=text))


def edited(documents: Documents, uri: str, text: str) -> None:
    documents.change(uri, documents.get(uri).version + 1, [TextDocumentContentChangeWholeDocument(text=text)])


def document(documents: Documents, max_tokens: int = 1000) -> Snapshot:
    """The document that is written, with a budget for what others say."""
    policy = Policy(settings=Settings(context=ContextSettings(max_tokens=max_tokens)))
    return replace(documents.get(HERE), policy=policy)


def chosen(
    context_selector: ContextSelector, documents: Documents, *, cursor: int = 0, max_tokens: int = 1000
) -> list[str]:
    return [held.path for held in context_selector.snippets(document(documents, max_tokens), cursor)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_functions_are_not_cut_in_two(line_end):
    documents, _ = editor()
    text = line_end.join(f"def f{number}(x):{line_end}    return x{line_end}" for number in range(200))
    opened(documents, "file:///w/app/other.py", text)
    parts = [part.text for part in read(documents.get("file:///w/app/other.py")).parts]
    assert len(parts) > 2
    assert all(part.startswith("def ") for part in parts)


@pytest.mark.parametrize("in_turn", [True, False])
def test_a_document_that_was_saved_under_another_name_is_not_beside_itself(in_turn):
    documents, selector = editor()
    opened(documents, "untitled:1", "")
    edited(documents, "untitled:1", "class circle:\n    radius = 1")
    if in_turn:
        documents.close("untitled:1")
    opened(documents, "file:///w/app/shapes.py", "class circle:\n    radius = 1\n")
    if not in_turn:
        documents.close("untitled:1")
    assert chosen(selector, documents) == ["shapes.py"]
    edited(documents, "file:///w/app/shapes.py", "class circle:\n    radius = 2\n")
    assert chosen(selector, documents) == ["shapes.py"]


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
    documents, context_selector = editor(lib__far="far = 1\n" * 20, lib__shapes="class circle: radius = 1\n")
    assert chosen(context_selector, documents, max_tokens=20) == ["shapes.py"]
    assert chosen(context_selector, documents, max_tokens=200) == ["far.py", "shapes.py"]
    assert chosen(context_selector, documents, max_tokens=0) == []


@given(st.lists(st.text(st.sampled_from("ab_\n xyz"), max_size=4000), max_size=4), st.integers(0, 3000))
def test_snippets_never_exceed_the_budget_and_hold_only_text_that_is_there(texts, max_tokens):
    documents, context_selector = editor(**{f"lib__n{at}": text for at, text in enumerate(texts)})
    snippets = context_selector.snippets(document(documents, max_tokens), 0)
    joints = 10 * len(texts)
    assert sum(len(held.text) for held in snippets) <= max_tokens * CHARS_BY_TOKEN + joints
    for held in snippets:
        whole = documents.get(f"file:///w/lib/{held.path}").text
        assert all(line in whole for line in held.text.splitlines())


def test_a_long_document_gives_the_part_that_shares_names_with_the_cursor_s():
    filler = "".join(f"def filler_{at}(): pass\n\n" for at in range(200))
    documents, context_selector = editor(
        lib__shapes=f"{filler}class Circle:\n    def area_of(circle): circle.radius\n\n{filler}"
    )
    (snippet,) = context_selector.snippets(document(documents, 500), 0)
    assert "circle.radius" in snippet.text


def test_typing_here_keeps_the_choice_and_its_order():
    documents, context_selector = editor(lib__b="class circle: radius = 1\n", app__a="class circle: area_of = 1\n")
    before = context_selector.snippets(document(documents), 0)
    edited(documents, HERE, MAIN + "class square: side = 1\n")
    assert context_selector.snippets(document(documents), len(MAIN)) is before


def test_a_change_elsewhere_chooses_anew_and_what_is_edited_comes_last():
    documents, context_selector = editor(app__a="class circle: area_of = 1\n", lib__b="class circle: radius = 1\n")
    assert chosen(context_selector, documents) == ["a.py", "b.py"]
    edited(documents, "file:///w/app/a.py", "class circle: area_of = 2\n")
    assert chosen(context_selector, documents) == ["b.py", "a.py"]
    assert context_selector.snippets(document(documents), 0)[1].text == "class circle: area_of = 2\n"


def test_a_document_that_is_opened_again_is_read_again_whatever_its_version():
    documents, context_selector = editor(lib__shapes="class circle: radius = 1\n", app__other="other = 1\n")
    uri = "file:///w/lib/shapes.py"
    for text in ("class circle: radius = 2\n", "class circle: radius = 3\n"):
        context_selector.snippets(document(documents), 0)
        documents.forget(uri)
        opened(documents, uri, text)
        assert text in [held.text for held in context_selector.snippets(document(documents), 0)]


def test_a_far_jump_chooses_anew():
    far = FAR_LINES * 3
    parts = "".join(f"def {name}(): pass\n" + "\n" * 1200 for name in ("left", "right"))
    documents, context_selector = editor(lib__parts=parts)
    edited(documents, HERE, "left()\n" + "\n" * far + "right()\n")
    (first,) = context_selector.snippets(document(documents, 420), 0)
    (second,) = context_selector.snippets(document(documents, 420), len(documents.get(HERE).text))
    assert "left" in first.text
    assert "right" in second.text


def test_documents_that_may_not_be_shown_are_left_out():
    documents = Documents(policy=lambda uri, _: Policy(may_show="secret" not in uri))
    for name in ("main", "shapes", "secret"):
        opened(documents, f"file:///w/app/{name}.py", "class circle: radius = 1\n")
    context_selector = ContextSelector(documents, EditHistory(documents))
    assert chosen(context_selector, documents) == ["shapes.py"]


def test_cells_of_one_notebook_see_each_other():
    documents = Documents()
    cells = [f"vscode-notebook-cell:/w/n.ipynb#W{at}" for at in range(2)]
    opened(documents, cells[0], "radius = 1\n")
    opened(documents, cells[1], "print(radius)\n")
    (snippet,) = ContextSelector(documents, EditHistory(documents)).snippets(documents.get(cells[1]), 0)
    assert snippet.text == "radius = 1\n"


def test_a_document_is_read_again_for_another_text_not_for_another_policy():
    documents, context_selector = editor(lib__shapes="one = 1\n")
    (other,) = documents.others(HERE)
    held = context_selector.names_of(other)
    assert context_selector.names_of(replace(other, policy=Policy(may_show=False))) is held
    edited(documents, other.uri, "two = 2\n")
    assert context_selector.names_of(documents.get(other.uri)).names == {"two"}


def test_nothing_is_kept_of_documents_that_nobody_knows_any_more():
    documents, context_selector = editor()
    for number in range(REMEMBERED_AFTER_CLOSING + 4):
        uri = f"file:///w/lib/n{number}.py"
        opened(documents, uri, "")
        edited(documents, uri, "class circle: radius = 1\n")
        context_selector.snippets(document(documents), 0)
        context_selector.forget(uri)
        documents.close(uri)
        context_selector.snippets(document(documents), 0)
    assert {*context_selector._names} == {other.uri for other in documents.others(HERE)}
