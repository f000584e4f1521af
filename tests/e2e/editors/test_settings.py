"""What VS Code's extension declares; this needs no editor."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dg_lsp import __version__

ROOT = Path(__file__).parents[3]
EXTENSION = ROOT / "editors" / "vscode"
OWN = {"dg-lsp.serverPath", "dg-lsp.maxFileBytes", "dg-lsp.trace.server"}


def flat(properties: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, held in properties.items():
        if "properties" in held:
            yield from flat(held["properties"], f"{prefix}.{key}")
        else:
            only = {"scope": "machine"} if held.pop("userOnly", False) else {}
            yield f"{prefix}.{key}", {**held, **only}


def declared() -> dict[str, Any]:
    return json.loads((EXTENSION / "package.json").read_text())


def test_the_extension_offers_the_settings_that_the_server_knows():
    schema = json.loads((ROOT / "dg_lsp" / "settings.schema.json").read_text())
    manifest = declared()
    offered = manifest["contributes"]["configuration"]["properties"]
    assert set(offered) >= OWN
    # `npm run settings` in editors/vscode brings them up to date.
    assert {name: held for name, held in offered.items() if name not in OWN} == dict(
        flat(schema["properties"], "dg-lsp")
    )


def test_no_workspace_sets_what_only_the_user_may():
    offered = declared()["contributes"]["configuration"]["properties"]
    only = {"serverPath", "engine.model", "engine.device", "engine.unload_after_s", "engine.exit_after_s", "stats"}
    only |= {"inline.deadline_ms", "inline.max_delay_ms"}
    only |= {f"engine.{name}" for name in ("tokenizer", "ca_file", "key_file", "allow_insecure")}
    only |= {"engine.http", "engine.http_token_file"}
    assert {name for name, held in offered.items() if held.get("scope") == "machine"} == {
        f"dg-lsp.{name}" for name in only
    }


def test_versions_go_together():
    assert declared()["version"] == __version__


def test_menus_keys_and_the_walkthrough_name_commands_and_pages_that_exist():
    held = declared()["contributes"]
    commands = {command["command"] for command in held["commands"]}
    (walkthrough,) = held["walkthroughs"]
    named = {entry["command"] for menu in held["menus"].values() for entry in menu}
    named |= {key["command"] for key in held["keybindings"]} - {"editor.action.inlineSuggest.trigger"}  # VS Code's own
    named |= set(re.findall(r"command:([\w.-]+)", json.dumps(walkthrough)))
    assert {"dg-lsp.rewrite", "dg-lsp.accept", "dg-lsp.doctor"} <= named <= commands
    pages = [step["media"]["markdown"] for step in walkthrough["steps"]]
    assert len(pages) == 3
    assert [page for page in pages if not (EXTENSION / page).is_file()] == []
    shown = f"{declared()['publisher']}.{declared()['name']}#{walkthrough['id']}"
    assert f'"{shown}"' in (EXTENSION / "src" / "remedies.ts").read_text()


def test_keys_and_buttons_of_a_proposal_are_for_its_own_diff_alone():
    held = declared()["contributes"]
    entries = [*held["keybindings"], *held["menus"]["editor/title"]]
    proposals = [entry["when"] for entry in entries if "proposal" in entry["when"] or "proposing" in entry["when"]]
    assert len(proposals) == 8
    own = ("dg-lsp.proposalInFront", "resourceScheme == dg-lsp-proposal")
    assert [when for when in proposals if not any(name in when for name in own)] == []


def test_a_virtual_workspace_is_refused_and_an_untrusted_one_chooses_no_program():
    held = declared()["capabilities"]
    assert held["virtualWorkspaces"]["supported"] is False
    assert held["virtualWorkspaces"]["description"]
    assert held["untrustedWorkspaces"]["supported"] == "limited"
    assert "dg-lsp.serverPath" in held["untrustedWorkspaces"]["restrictedConfigurations"]
