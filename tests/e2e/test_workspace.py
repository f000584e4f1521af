"""Settings, switches, status, files kept from the model, statistics, the completion menu: seen from an editor."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import copy
from typing import Any

import pytest

from dg_lsp.config.settings import Settings
from tests.e2e.cases import ADD, BODY, CALL, DEDENTED, MONEY, NAME, PARTED, SEVERAL, SLOW, SWALLOWED, text_of
from tests.e2e.window import CLIENTS, recorded, until, window
from tests.engine.processes import home

pytestmark = pytest.mark.asyncio


async def test_settings_come_from_the_start_a_change_and_the_project_and_wrong_ones_are_named_once(shared, tmp_path):
    (tmp_path / "dg-lsp.toml").write_text("[inline]\ncandidates = 1\nthreshhold = 1\n")
    options = {"dg": {"inline": {"candidates": 2}, "colour": "red"}}
    problems = [
        "Unknown setting 'colour' is ignored.",
        "Unknown setting 'inline.threshhold'; did you mean 'threshold'?",
        "The setting 'inline.candidates' must be a whole number in 1..16, not 99; it is ignored.",
    ]
    async with window(shared, options=options, folders=[tmp_path], log="threshhold") as held:
        held.open(text_of(SEVERAL), "in_project.py")
        assert len(await held.ghosts(invoked=True)) == 1
        held.editor._folder = "/elsewhere"
        held.open(text_of(SEVERAL), "outside.py")
        assert len(await held.ghosts(invoked=True)) == 2
        for _ in range(2):
            held.notify("workspace/didChangeConfiguration", {"settings": {"dg": {"inline": {"candidates": 3}}}})
            assert len(await held.ghosts(invoked=True)) == 3
            held.notify("workspace/didChangeConfiguration", {"settings": {"inline": {"candidates": 99}}})
            assert len(await held.ghosts(invoked=True)) == 2
        assert [message.message for message in held.client.log_messages] == problems


async def test_a_client_that_can_tell_its_settings_is_asked(shared):
    configuration = {"": {"dg": {"inline": {"candidates": 2}}}}
    async with window(shared, configuration=configuration) as held:
        held.open(text_of(SEVERAL))
        assert len(await held.ghosts(invoked=True)) == 2
        held.client.set_configuration({"inline": {"candidates": 1}}, section="dg")
        held.notify("workspace/didChangeConfiguration", {"settings": None})

        async def one() -> bool:
            return len(await held.ghosts(invoked=True)) == 1

        await until(one, "the new settings")
        # The last one is taken out again.
        held.client.set_configuration({}, section="dg")
        held.notify("workspace/didChangeConfiguration", {"settings": None})

        async def usual() -> bool:
            return len(await held.ghosts(invoked=True)) == Settings().inline.candidates

        await until(usual, "the defaults")


async def test_switching_off_and_on_everywhere_by_language_and_by_folder(shared, tmp_path):
    async with window(shared, folders=[tmp_path]) as held:
        held.open(ADD, "a.py")
        uri = held.editor.buffer.uri
        folder = {"folder": tmp_path.as_uri()}
        for switch in ({}, {"language": "python"}, folder, {"language": "python", **folder}):
            told = await held.request("dg/setEnabled", {"enabled": False, **switch})
            assert told["state"] == ("ready" if switch else "off")
            assert await held.ghost() is None
            assert (await held.status(uri=uri))["document"]["off"].startswith("Suggestions are switched off")
            await held.request("dg/setEnabled", {"enabled": True, **switch})
            assert await held.ghost() == "a + b"
        assert (await held.status(uri=uri))["document"]["off"] == ""


async def test_what_is_switched_off_by_choice_is_told_apart_from_what_is_kept_from_the_model(shared, tmp_path):
    async with window(shared, folders=[tmp_path]) as held:
        held.open("KEY=1\n", ".env")
        asked = ({"uri": held.editor.buffer.uri}, {"uri": "file:///not/open.py"}, {})
        assert (await held.status(**asked[0]))["document"]["off"]
        assert [(await held.status(**each))["enabled"] for each in asked] == [True] * 3
        await held.request("dg/setEnabled", {"enabled": False})
        assert [(await held.status(**each))["enabled"] for each in asked] == [False] * 3
        await held.request("dg/setEnabled", {"enabled": True})
        await held.request("dg/setEnabled", {"enabled": False, "folder": tmp_path.as_uri()})
        assert [(await held.status(**each))["enabled"] for each in asked] == [False, True, True]


async def test_switching_a_folder_elsewhere_or_one_that_is_none_switches_nothing_here(shared):
    async with window(shared) as held:
        held.open(ADD)
        await held.request("dg/setEnabled", {"enabled": False, "folder": "vscode-remote://host/home/me"})
        with pytest.raises(Exception, match="The folder must be a URI"):
            await held.request("dg/setEnabled", {"enabled": False, "folder": "/home/me"})
        assert await held.ghost() == "a + b"


async def test_switching_on_overrides_the_setting(shared):
    async with window(shared, options={"enabled": False}, ready=False) as held:
        held.open(ADD)
        assert (await held.status())["state"] == "off"
        assert await held.ghost() is None
        told = await held.request("dg/setEnabled", {"enabled": True})
        assert told["state"] != "off"
        await held.until_ready()
        assert await held.ghost() == "a + b"


async def test_no_suggestion_in_a_file_that_is_kept_from_the_model(shared, tmp_path):
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    (tmp_path / ".dgignore").write_text("private/\n")
    async with window(shared, folders=[tmp_path]) as held:
        for name in (".env", "id_rsa", "ignored.py", "private/a.py"):
            held.open(ADD, name)
            assert await held.ghost() is None
            assert await held.ghost(invoked=True) is None
            off = (await held.status(uri=held.editor.buffer.uri))["document"]["off"]
            assert off.startswith("The document is excluded from the model")
        held.open(ADD, "seen.py")
        assert await held.ghost() == "a + b"


async def test_folders_count_from_when_they_are_added_until_they_are_removed(shared, tmp_path):
    uris = list[str]()
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "dg-lsp.toml").write_text("[inline]\ncandidates = 1\n")
        uris.append(folder.as_uri())

    async with window(shared, folders=[tmp_path / "one"], options={"inline": {"deadline_ms": 20_000}}) as held:
        held.editor._folder = str(tmp_path)

        def change(**uris: str) -> None:
            event = {"added": [], "removed": []}
            event |= {key: [{"uri": uri, "name": "folder"}] for key, uri in uris.items()}
            held.notify("workspace/didChangeWorkspaceFolders", {"event": event})

        async def candidates() -> list[int]:
            found = list[int]()
            for path in ("one/a.py", "two/a.py"):
                held.open(text_of(SEVERAL), path)
                found.append(len(await held.ghosts(invoked=True)))
            return found

        assert await candidates() == [1, 3]
        change(added=uris[1])
        assert await candidates() == [1, 1]
        change(removed=uris[0])
        assert await candidates() == [3, 1]


async def test_untitled_documents_and_notebook_cells_are_documents(shared):
    async with window(shared) as held:
        for uri in ("untitled:Untitled-1", "vscode-notebook-cell:/w/n.ipynb#W0sZmlsZQ%3D%3D"):
            held.open(ADD)
            held.editor.close()
            held.editor.path = uri
            held.open(ADD, uri)
            held.editor.buffers[uri].uri = uri
            document = {"uri": uri, "languageId": "python", "version": 1, "text": held.editor.buffer.text}
            held.notify("textDocument/didOpen", {"textDocument": document})
            assert await held.ghost() == "a + b"


async def test_a_closed_document_is_gone(shared):
    async with window(shared) as held:
        held.open(ADD, "a.py")
        buffer = held.editor.buffer
        held.editor.close()
        held.editor.buffers["a.py"] = buffer
        assert await held.ghost() is None


async def test_the_status_tells_a_start_from_nothing_and_a_bar_shows_it():
    with home() as place:
        given = recorded("vscode") | {"experimental": {"dgStatus": True}}
        async with window(place, given, model=place.oracle(ADD)) as held:
            assert [status["state"] for status in held.client.statuses] == ["loading", "ready"]
            bars = list(held.client.progress_reports.values())
            kinds = [report.kind for bar in bars for report in bar]
            assert kinds[0] == "begin"
            assert kinds[-1] == "end"
            held.open(ADD)
            assert await held.ghost() == "a + b"


async def test_a_long_fill_shows_as_busy(shared):
    given = recorded("neovim") | {"experimental": {"dgStatus": True}}
    async with window(shared, given, options={"inline": {"deadline_ms": 20_000}}) as held:
        held.open(text_of(SLOW))
        await held.ghost()

        async def rests() -> bool:
            return held.client.statuses[-1]["state"] == "ready"

        await until(rests, "the end of the work")
        assert [status["state"] for status in held.client.statuses][-2:] == ["busy", "ready"]


async def test_a_client_that_does_not_know_the_status_is_not_told(shared):
    async with window(shared, "emacs", ready=False) as held:
        held.open(ADD)
        await held.ghost()
        assert held.client.statuses == []


async def test_an_engine_that_can_not_start_is_a_sentence_in_the_status_and_nothing_else():
    with home() as place:
        async with window(place, model="oracle:/nowhere.json", ready=False) as held:

            async def error() -> str:
                told = await held.status()
                return told["message"] if told["state"] == "error" else ""

            assert "/nowhere.json" in await until(error, "the error")
            held.open(ADD)
            assert await held.ghost() is None


async def test_what_became_of_suggestions_is_counted_and_can_be_erased(shared, tmp_path):
    # The shared engine, but counts of this test's own.
    place = copy(shared)
    place.environment = {**shared.environment, "DG_LSP_STATE_DIR": str(tmp_path)}
    options = {"inline": {"deadline_ms": 20_000}}

    def stats(*arguments: str) -> str:
        command = [sys.executable, "-m", "dg_lsp", "stats", *arguments]
        return subprocess.run(command, env=place.environment, capture_output=True, text=True, check=True).stdout

    async with window(place, options=options) as held:
        held.open(ADD)
        held.editor.accept((await held.ghosts())[0])
        held.open(text_of(SEVERAL))
        _, second, _ = await held.ghosts(invoked=True)
        held.editor.accept(second)
        held.open(CALL)
        await held.ghost()
        held.editor.type("compute")
        held.open(NAME)
        await held.ghost()
        held.editor.type("x")
    (tally,) = json.loads(stats("--json"))
    assert tally == {
        "language": "python",
        "shown": 4,
        "accepted": 2,
        "partial": 1,
        "typed": 0,
        "rejected": 1,
        "accepted_chars": len("a + b") + len(second.text) + len("compute"),
    }
    assert "python" in stats()
    stats("--reset")
    assert json.loads(stats("--json")) == []
    assert stats() == "No suggestion was shown yet.\n"
    async with window(place, options={**options, "stats": False}) as held:
        held.open(ADD)
        held.editor.accept((await held.ghosts())[0])
    assert json.loads(stats("--json")) == []


async def test_what_stands_in_a_file_that_is_not_open_is_suggested_and_said_where(shared, tmp_path):
    (tmp_path / "sums.py").write_text("def add(c, d):\n    return c + d\n")
    async with window(shared, folders=[tmp_path], options={"inline": {"deadline_ms": 20_000}}) as held:
        held.open(ADD, "here.py")

        async def origin() -> str:
            """Where what is shown in a document of which nothing is remembered stands."""
            held.editor.close()
            held.open(ADD, "here.py")
            assert await held.ghost() == "a + b"
            return (await held.status())["origin"]

        assert await until(origin, "the file in the index") == "from sums.py:2"
        (tmp_path / ".dgignore").write_text("sums.py\n")
        held.notify("workspace/didChangeWatchedFiles", {"changes": []})
        assert await origin() == ""


@pytest.mark.parametrize("client", CLIENTS)
async def test_without_inline_completion_the_menu_has_one_item_behind_all_others(shared, client):
    given = recorded(client)
    del given["textDocument"]["inlineCompletion"]
    async with window(shared, given, options={"inline": {"deadline_ms": 20_000}}) as held:
        held.open(NAME)
        held.editor.type("pre")
        position = {"line": 0, "character": 12}
        params = {"textDocument": {"uri": held.editor.buffer.uri}, "position": position}
        found = await held.request("textDocument/completion", params)
        (item,) = found["items"]
        assert found["isIncomplete"]
        assert item["textEdit"] == {
            "range": {"start": {"line": 0, "character": 9}, "end": position},
            "newText": "pressure * volume",
        }
        assert (item["label"], item["filterText"], item["preselect"]) == ("pressure * volume", "pre", False)
        assert item["sortText"] > "zzzz"
        assert "dg-lsp" in item["labelDetails"]["description"]


@pytest.mark.parametrize(("modes", "mode", "indent"), [(None, 1, "    "), ([1, 2], 1, "    "), ([2], 2, "")])
async def test_lines_in_the_menu_s_item_are_indented_once(shared, modes, mode, indent):
    item = {"insertTextModeSupport": {"valueSet": modes}} if modes else {}
    given = {"textDocument": {"completion": {"completionItem": item}}}
    async with window(shared, given, options={"inline": {"deadline_ms": 20_000}}) as held:
        held.open(BODY)
        params = {"textDocument": {"uri": held.editor.buffer.uri}, "position": {"line": 1, "character": 4}}
        (item,) = (await held.request("textDocument/completion", params))["items"]
        lines = item["textEdit"]["newText"].splitlines()
        assert lines[:3] == ["result = 0", f"{indent}for item in items:", f"{indent}    result += item"]
        assert item["insertTextMode"] == mode
        # Helix takes what is of the kind Snippet for one, whatever its format, and indents it once more.
        assert (item["kind"], item["insertTextFormat"]) == (1, 1)


async def test_the_menu_s_item_leaves_alone_what_stands_after_the_cursor_already(shared):
    async with window(shared, {}, options={"inline": {"deadline_ms": 20_000}}) as held:
        held.open(SWALLOWED)
        position = {"line": 0, "character": 16}
        params = {"textDocument": {"uri": held.editor.buffer.uri}, "position": position}
        (item,) = (await held.request("textDocument/completion", params))["items"]
        assert (item["textEdit"]["newText"], item["textEdit"]["range"]["end"]) == ("left, right", position)


NEOVIM_S_OWN = {
    BODY: "result = 0\nfor item in items:\n    result += item\nreturn result",
    MONEY: 'x = {n\\}\nreturn f"\\\\\\\\\\${x\\}"',
    PARTED: "first = 1\n\nsecond = 2",
    DEDENTED: "first,\nsecond,",
}
"""What its snippets put before each line but the first is left out, and what could not be written so."""


@pytest.mark.parametrize("case", NEOVIM_S_OWN)
async def test_neovim_s_own_completion_gets_a_snippet_as_it_takes_nothing_else_whole(shared, case):
    given = recorded("neovim")
    del given["textDocument"]["inlineCompletion"]
    async with window(shared, given, options={"inline": {"deadline_ms": 20_000}}, name="Neovim") as held:
        held.open(case)
        above, line = case.split("▮")[0].rsplit("\n", 1)
        position = {"line": above.count("\n") + 1, "character": len(line)}
        params = {"textDocument": {"uri": held.editor.buffer.uri}, "position": position}
        (item,) = (await held.request("textDocument/completion", params))["items"]
        assert (item["textEdit"]["newText"], item["insertTextFormat"]) == (NEOVIM_S_OWN[case], 2)
        # What is selected stands in the text until something is taken.
        assert item["label"] == case.split("▮")[1].splitlines()[0]
    # Its plugins for completion say how they indent, and take an item as it is.
    given["textDocument"]["completion"]["completionItem"]["insertTextModeSupport"] = {"valueSet": [1]}
    async with window(shared, given, options={"inline": {"deadline_ms": 20_000}}, name="Neovim") as held:
        held.open(case)
        params["textDocument"]["uri"] = held.editor.buffer.uri
        (item,) = (await held.request("textDocument/completion", params))["items"]
        assert (item["textEdit"]["newText"], item["insertTextFormat"]) == (case.split("▮")[1], 1)


MENU = {"line": 0, "character": 9}


async def test_the_menu_can_be_switched_on_beside_inline_completion_and_off_again(shared):
    async with window(shared, options={"completion": "on"}) as held:
        held.open(NAME)
        params = {"textDocument": {"uri": held.editor.buffer.uri}, "position": MENU}
        assert (await held.request("textDocument/completion", params))["items"]
        for later in ("off", "auto"):
            held.notify("workspace/didChangeConfiguration", {"settings": {"completion": later}})
            assert await held.request("textDocument/completion", params) is None
        assert held.client.registrations == []


LATER = ["dg-lsp.toml", "a later dg-lsp.toml", "a change", "workspace/configuration"]


@pytest.mark.parametrize("where", LATER)
async def test_a_client_learns_later_that_the_menu_is_wanted(shared, tmp_path, where):
    project = tmp_path / "dg-lsp.toml"
    if where == "dg-lsp.toml":
        project.write_text('completion = "on"\n')
    told = {"": {"dg-lsp": {"completion": "on"}}} if where == LATER[3] else None
    async with window(shared, folders=[tmp_path], configuration=told) as held:
        held.open(NAME, "a.py")
        params = {"textDocument": {"uri": held.editor.buffer.uri}, "position": MENU}
        if where in LATER[1:3]:
            assert await held.request("textDocument/completion", params) is None
            assert held.client.registrations == []
        if where == "a change":
            held.notify("workspace/didChangeConfiguration", {"settings": {"completion": "on"}})
        if where in LATER[:2]:
            project.write_text('completion = "on"\n')

        async def told() -> list[str]:
            held.editor.type("x")
            held.editor.undo()
            return held.client.registrations

        assert await until(told, "the registration") == ["textDocument/completion"]
        assert (await held.request("textDocument/completion", params))["items"]
        held.open(NAME, "b.py")
        assert await told() == ["textDocument/completion"]


@pytest.mark.parametrize("where", LATER)
async def test_a_client_that_can_not_learn_it_later_asks_from_the_start(shared, tmp_path, where):
    """Nor do the plugins that ask look at more than what the answer to `initialize` says."""
    project = tmp_path / "dg-lsp.toml"
    if where == "dg-lsp.toml":
        project.write_text('completion = "on"\n')
    told = {"": {"dg-lsp": {"completion": "on"}}} if where == LATER[3] else None
    async with window(shared, "neovim", folders=[tmp_path], configuration=told) as held:
        held.open(NAME, "a.py")
        params = {"textDocument": {"uri": held.editor.buffer.uri}, "position": MENU}
        if where in LATER[1:3]:
            assert await held.request("textDocument/completion", params) is None
        if where == "a change":
            held.notify("workspace/didChangeConfiguration", {"settings": {"completion": "on"}})
        if where == "a later dg-lsp.toml":
            project.write_text('completion = "on"\n')

        async def offered() -> list[Any]:
            held.editor.type("x")
            held.editor.undo()
            found = await held.request("textDocument/completion", params)
            return found["items"] if found else []

        assert await until(offered, "an item in the menu")
        assert held.client.registrations == []


async def test_a_client_that_can_not_learn_later_what_it_switched_off_is_told_once_where_the_setting_belongs(
    shared, tmp_path
):
    (tmp_path / "dg-lsp.toml").write_text('completion = "on"\n')
    options = {"completion": "off"}
    async with window(shared, "neovim", options=options, folders=[tmp_path], log="initializationOptions") as held:
        for name in ("a.py", "b.py"):
            held.open(NAME, name)
        assert await held.ghost()
        (said,) = held.client.log_messages
        assert "'completion'" in said.message
        assert "initializationOptions" in said.message
        assert held.client.registrations == []
