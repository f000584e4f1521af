"""What the index of a session knows of real files, and when it stops knowing it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem

from dg_lsp.config.configuration import Configuration
from dg_lsp.config.exclusion import Exclusions
from dg_lsp.documents.documents import Documents, Policy
from dg_lsp.documents.gap import gap_at
from dg_lsp.documents.notebooks import NOTHING_AROUND, NotebookCell, Notebooks
from dg_lsp.workspace import index
from dg_lsp.workspace.index import MAX_FILE_NBYTES, WorkspaceIndex

pytestmark = pytest.mark.asyncio
ELSEWHERE = "\ndef area(x):\n    if x is None:\n        raise ValueError(x)\n"
HERE = "def volume(y):\n    if y is None:\n        ▮\n"


class Workspace:
    """A folder with a session's index of it."""

    def __init__(self, folder: Path, settings: object = None) -> None:
        self.folder = folder
        self.configuration = Configuration(lambda problem: pytest.fail(problem))
        self.configuration.initialize(settings)
        self.exclusions = Exclusions()
        self.documents = Documents(policy=self._policy)
        self.index = WorkspaceIndex(self.documents, lambda: [folder])

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        return path

    def open(self, name: str, marked: str) -> None:
        self.uri = (self.folder / name).as_uri()
        self.cursor = max(marked.find("▮"), 0)
        self.exclusions.look(self.uri, [self.folder])
        text = marked.replace("▮", "")
        self.documents.open(TextDocumentItem(uri=self.uri, language_id="python", version=1, text=text))
        self.index.opened(self.uri)

    def becomes(self, text: str, name: str) -> None:
        uri = (self.folder / name).as_uri()
        self.documents.change(uri, 2, [TextDocumentContentChangeWholeDocument(text=text)])
        self.index.changed()

    async def matches(self, name: str = "here.py", marked: str = HERE) -> dict[str, str]:
        """Texts by where they stand."""
        self.open(name, marked)
        await eventually(lambda: self.index.is_complete)
        gap = gap_at(self.documents.get(self.uri), self.cursor)
        return {each.origin: each.text for each in await self.index.matches(gap)}

    def _policy(self, uri: str, language: str) -> Policy:
        shows = not self.exclusions.why_excluded(uri)
        return Policy(settings=self.configuration.settings_of(uri), may_show=shows)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setattr(index, "IDLE_S", 0.0)
    monkeypatch.setattr(index, "WAIT_S", 10.0)
    monkeypatch.setattr(index, "LOOK_UP_S", 60.0)
    made = Workspace(tmp_path.resolve())
    yield made
    made.index.close()


async def test_a_file_that_is_not_open_is_a_workspace_match_with_the_gaps_names(workspace: Workspace):
    workspace.write("src/shapes.py", ELSEWHERE)
    workspace.write("src/shapes.txt", ELSEWHERE)
    assert await workspace.matches() == {"src/shapes.py:4": "raise ValueError(y)"}


async def test_folders_have_any_name(workspace: Workspace):
    inner = Workspace(workspace.folder / "C#" / "100%")
    inner.write("shapes.py", ELSEWHERE)
    assert await inner.matches() == {"shapes.py:4": "raise ValueError(y)"}
    inner.index.close()


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
async def test_line_ends_of_any_kind_are_line_feeds_in_a_match(workspace: Workspace, line_end: str):
    workspace.write("shapes.py", "if x is None:\n    one(x)\n    two(x)\nthree(x)\n")
    found = await workspace.matches(marked="if y is None:\n    one(y)\n    ▮\nthree(y)\n".replace("\n", line_end))
    assert found["shapes.py:3"] == "two(y)"
    text = "if x is None:\n    four(x)\n    two(x)\n    three(x)\nfive(x)\n"
    workspace.write("lines.py", text.replace("\n", line_end))
    workspace.index.look_anew()
    found = await workspace.matches(marked="if y is None:\r\n    four(y)\r\n    ▮\r\nfive(y)\r\n")
    assert found["lines.py:3"] == "two(y)\n    three(y)"


@pytest.mark.parametrize(
    "name", ["secrets/shapes.py", "ignored/shapes.py", "ignored.py", "kept/not.py", ".hidden/a.py"]
)
async def test_what_the_model_may_not_see_is_no_workspace_match(workspace: Workspace, name: str):
    (workspace.folder / ".git").mkdir()
    workspace.write(".gitignore", "ignored*\n")
    workspace.write(".dgignore", "secrets/\nnot.py\n")
    workspace.write(name, ELSEWHERE)
    assert await workspace.matches() == {}
    assert workspace.index.files == 0


async def test_a_link_out_of_the_workspace_is_not_followed(workspace: Workspace, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "shapes.py").write_text(ELSEWHERE, encoding="utf-8")
    (workspace.folder / "linked").symlink_to(outside)
    (workspace.folder / "linked.py").symlink_to(outside / "shapes.py")
    assert await workspace.matches() == {}


@pytest.mark.parametrize("told", [True, False])
async def test_a_file_that_becomes_ignored_leaves_at_once(workspace: Workspace, monkeypatch, told: bool):
    workspace.write("shapes.py", ELSEWHERE)
    assert await workspace.matches()
    workspace.write(".dgignore", "shapes.py\n")
    if told:
        workspace.index.look_anew()
    else:
        # Nobody told: what was looked at a moment ago is looked at again.
        monkeypatch.setattr("dg_lsp.config.looking.LOOK_AGAIN_S", 0.0)
    gap = gap_at(workspace.documents.get(workspace.uri), workspace.cursor)
    assert await workspace.index.matches(gap) == ()
    await eventually(lambda: workspace.index.files == 0)


async def test_a_file_that_changed_is_none_until_it_is_read_again(workspace: Workspace):
    path = workspace.write("shapes.py", ELSEWHERE)
    assert await workspace.matches()
    path.write_text(ELSEWHERE.replace("ValueError", "AnotherError"), encoding="utf-8")
    workspace.index.look_anew()
    assert list((await workspace.matches()).values()) == ["raise AnotherError(y)"]
    path.unlink()
    workspace.index.look_anew()
    assert await workspace.matches() == {}


async def test_a_file_that_can_not_be_taken_in_any_more_leaves(workspace: Workspace):
    path = workspace.write("shapes.py", ELSEWHERE)
    assert await workspace.matches()
    path.write_text(f"{ELSEWHERE}\0", encoding="utf-8")
    workspace.index.look_anew()
    assert await workspace.matches() == {}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
async def test_a_file_below_a_name_that_is_no_text_is_a_workspace_match_unless_it_is_excluded(workspace: Workspace):
    folder = os.fsdecode(b"caf\xe9")
    workspace.write(f"{folder}/shapes.py", ELSEWHERE)
    (origin,) = await workspace.matches()
    assert origin == "shapes.py:4"
    workspace.write(f"{folder}/.dgignore", "shapes.py\n")
    workspace.index.look_anew()
    assert await workspace.matches() == {}


async def test_of_an_open_document_what_the_editor_shows_counts(workspace: Workspace):
    workspace.write("shapes.py", ELSEWHERE)
    workspace.open("shapes.py", ELSEWHERE.replace("ValueError", "OpenError"))
    assert await workspace.matches() == {"shapes.py:4": "raise OpenError(y)"}
    workspace.becomes(ELSEWHERE.replace("ValueError", "TypedError"), "shapes.py")
    assert await workspace.matches() == {"shapes.py:4": "raise TypedError(y)"}
    uri = (workspace.folder / "shapes.py").as_uri()
    workspace.documents.close(uri)
    workspace.index.closed(uri)
    assert await workspace.matches() == {"shapes.py:4": "raise ValueError(y)"}


async def test_an_open_document_that_becomes_too_long_is_no_workspace_match(workspace: Workspace):
    workspace.write("shapes.py", ELSEWHERE)
    workspace.open("shapes.py", ELSEWHERE)
    assert await workspace.matches()
    workspace.becomes(ELSEWHERE + "#" * MAX_FILE_NBYTES, "shapes.py")
    assert await workspace.matches() == {}
    workspace.index.look_anew()
    assert (await workspace.matches(), workspace.index.files) == ({}, 0)
    uri = (workspace.folder / "shapes.py").as_uri()
    workspace.documents.close(uri)
    workspace.index.closed(uri)
    assert await workspace.matches() == {"shapes.py:4": "raise ValueError(y)"}


async def test_a_document_that_becomes_excluded_is_none_at_once(workspace: Workspace):
    workspace.open("shapes.py", ELSEWHERE)
    assert await workspace.matches()
    workspace.write(".dgignore", "shapes.py\n")
    workspace.exclusions.look((workspace.folder / "shapes.py").as_uri(), [workspace.folder])
    workspace.documents.renew()
    gap = gap_at(workspace.documents.get(workspace.uri), workspace.cursor)
    assert await workspace.index.matches(gap) == ()


@pytest.mark.parametrize("settings", [{"context": {"workspace": False}}, {"context": {"enabled": False}}])
async def test_it_can_be_switched_off(workspace: Workspace, settings: object):
    workspace.write("shapes.py", ELSEWHERE)
    workspace.configuration.initialize(settings)
    workspace.open("here.py", HERE)
    gap = gap_at(workspace.documents.get(workspace.uri), workspace.cursor)
    workspace.index._take_documents()
    assert await workspace.index.matches(gap) == ()
    assert workspace.index.files == 0


async def test_nothing_is_read_while_somebody_types(workspace: Workspace, monkeypatch):
    monkeypatch.setattr(index, "IDLE_S", 0.3)
    workspace.write("shapes.py", ELSEWHERE)
    workspace.open("here.py", HERE)
    for _ in range(20):
        workspace.index.changed()
        await asyncio.sleep(0.03)
    assert workspace.index.files == 0
    await eventually(lambda: workspace.index.files == 1)


async def test_no_more_files_are_taken_than_the_bounds_allow(workspace: Workspace, monkeypatch):
    monkeypatch.setattr(index, "MAX_FILES", 3)
    monkeypatch.setattr(index, "MAX_FILE_NBYTES", 1000)
    workspace.write("a.py", ELSEWHERE + "#" * 1000)
    for number in range(5):
        workspace.write(f"b{number}.py", ELSEWHERE)
    await workspace.matches()
    assert workspace.index.files == 2


async def test_of_a_notebook_its_cells_are_taken_and_nothing_around_them_is_put_together(workspace, monkeypatch):
    asked = list[str]()
    monkeypatch.setattr(Notebooks, "around", lambda _, uri: asked.append(uri) or NOTHING_AROUND)
    notebook = (workspace.folder / "n.ipynb").as_uri()
    cell = f"vscode-notebook-cell:{notebook.removeprefix('file:')}#W0"
    workspace.exclusions.look(notebook, [workspace.folder])
    workspace.documents.open_notebook(notebook, [NotebookCell(uri=cell, is_code=True)])
    workspace.documents.open(TextDocumentItem(uri=cell, language_id="python", version=1, text=ELSEWHERE))
    workspace.index.opened(cell)
    await eventually(lambda: workspace.index.is_complete)
    assert ([*workspace.index._open.names()], asked) == ([cell], [])
    workspace.write("n.ipynb", ELSEWHERE)
    workspace.documents.close(cell)
    workspace.index.closed(cell)
    await eventually(lambda: workspace.index.is_complete)
    assert ([*workspace.index._open.names()], workspace.index.files) == ([], 0), "a notebook's file is no code"


SHAPES = "class Circle:\n    def __init__(self, radius: float) -> None:\n        self.radius = radius\n"
IMPORTING = "from app.shapes import Circle\n\nround_ = ▮\n"


async def definitions(workspace: Workspace, name: str = "app/here.py", marked: str = IMPORTING) -> dict[str, str]:
    await workspace.matches(name, marked)
    return await known(workspace)


async def known(workspace: Workspace) -> dict[str, str]:
    gap = gap_at(workspace.documents.get(workspace.uri), workspace.cursor)
    return {each.path: each.text for each in await workspace.index.definitions(gap)}


async def test_what_is_imported_is_told_by_its_signature(workspace: Workspace):
    workspace.write("src/app/shapes.py", SHAPES)
    assert await definitions(workspace, "src/app/here.py") == {
        "shapes.py": "class Circle:\n    def __init__(self, radius: float) -> None:\n"
    }


async def test_an_open_file_is_told_as_it_is_and_not_by_its_signatures(workspace: Workspace):
    workspace.write("app/shapes.py", SHAPES)
    workspace.open("app/shapes.py", SHAPES)
    assert await definitions(workspace) == {}


async def test_a_changed_file_is_told_anew(workspace: Workspace):
    path = workspace.write("app/shapes.py", SHAPES)
    assert "radius" in (await definitions(workspace))["shapes.py"]
    path.write_text(SHAPES.replace("radius", "size_of_it"))
    workspace.index.look_anew()
    await known(workspace)
    await eventually(lambda: workspace.index.is_complete)
    assert "size_of_it" in (await known(workspace))["shapes.py"]


async def test_a_file_that_becomes_ignored_tells_nothing_at_once(workspace: Workspace):
    workspace.write("app/shapes.py", SHAPES)
    assert await definitions(workspace)
    workspace.write(".dgignore", "shapes.py\n")
    workspace.index.look_anew()
    assert await known(workspace) == {}


@pytest.mark.parametrize("settings", [{"context": {"workspace": False}}, {"context": {"enabled": False}}])
async def test_nothing_is_told_where_that_is_off(workspace: Workspace, settings: object):
    workspace.configuration.initialize(settings)
    workspace.write("app/shapes.py", SHAPES)
    workspace.open("app/here.py", IMPORTING)
    await asyncio.sleep(0.1)
    assert await known(workspace) == {}


async def test_an_import_that_is_typed_is_resolved(workspace: Workspace):
    workspace.write("app/shapes.py", SHAPES)
    assert await definitions(workspace, marked="round_ = ▮\n") == {}
    workspace.becomes(IMPORTING.replace("▮", ""), "app/here.py")
    async with asyncio.timeout(20):
        while not await known(workspace):
            await asyncio.sleep(0.01)


async def test_an_imported_name_that_nothing_uses_is_a_workspace_match_until_it_is_used(workspace: Workspace):
    marked = "from shapes import area\n\nresult = ▮\n"
    assert await workspace.matches(marked=marked) == {"here.py:1": "area"}
    workspace.becomes(marked.replace("▮", "area").replace("result", "total") + "result = \n", "here.py")
    text = workspace.documents.get(workspace.uri).text
    gap = gap_at(workspace.documents.get(workspace.uri), len(text) - 1)
    assert await workspace.index.matches(gap) == (), "whether or not the document was looked at again"


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
async def test_a_name_that_is_not_imported_is_a_workspace_match_as_another_file_imports_it(
    workspace: Workspace, line_end: str
):
    workspace.write("there.py", "import re\nfrom shapes import area\n")
    marked = "import os\n▮\n\nprint(area(os))\n".replace("\n", line_end)
    assert (await workspace.matches(marked=marked))["there.py:2"] == "from shapes import area"


async def test_how_an_excluded_file_imports_a_name_is_not_told(workspace: Workspace):
    workspace.write("there.py", "import re\nfrom shapes import area\n")
    workspace.write(".dgignore", "there.py\n")
    marked = "import os\n▮\n\nprint(area(os))\n"
    assert await workspace.matches(marked=marked) == {}
