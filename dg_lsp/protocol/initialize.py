"""The answer to `initialize`, sent before anything heavy is imported.

An editor waits for this answer, and importing the protocol's types takes longer than the rest of a start. So the answer
is plain JSON here; a test compares it with what pygls would answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from dg_lsp import __version__
from dg_lsp.config.sections import section
from dg_lsp.protocol.copilot import understood

NAME = "dg-lsp"
ACCEPTED = "dg.accepted"
"""The command that editors run after inserting a suggestion."""
DISMISS_EDIT = "dg.dismissEdit"
"""The command to dismiss a next edit."""
REWRITE_SELECTION, REWRITE, FIX, FILL_HERE = "dg.rewriteSelection", "dg.rewrite", "dg.fix", "dg.fillHere"
PULL = "dg.pull"
"""The command to download a model."""
COMMANDS = (ACCEPTED, DISMISS_EDIT, PULL, REWRITE_SELECTION, REWRITE, FIX, FILL_HERE)
ACTION_KINDS = ("refactor.rewrite", "quickfix", "source.fixAll.dg")
ANY_NOTEBOOK = "*"
"""Notebooks of any kind, with all cells."""
_ENCODINGS = ("utf-8", "utf-16", "utf-32")


def answer_to(message: Any) -> tuple[object, bytes] | None:
    """The id of an `initialize` request and the body of the answer; None for any other message."""
    try:
        id_, params = message["id"], message["params"]
        if message["jsonrpc"] != "2.0" or message["method"] != "initialize" or type(id_) not in (int, str):
            return None
        result = {
            "capabilities": capabilities(understood(params)),
            "serverInfo": {"name": NAME, "version": __version__},
        }
    except (KeyError, TypeError, AttributeError):
        return None
    return id_, json.dumps({"id": id_, "jsonrpc": "2.0", "result": result}).encode()


def capabilities(params: Mapping[str, Any]) -> dict[str, Any]:
    client = cast(Mapping[str, Any], params["capabilities"])
    offered: dict[str, Any] = {
        "positionEncoding": _encoding(client),
        "textDocumentSync": {"openClose": True, "change": 2},
        "inlineCompletionProvider": {},
        "codeActionProvider": {"codeActionKinds": list(ACTION_KINDS)},
        "executeCommandProvider": {"commands": list(COMMANDS)},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}, "fileOperations": {}},
    }
    if client.get("notebookDocument") is not None:
        offered["notebookDocumentSync"] = {"notebookSelector": [{"notebook": ANY_NOTEBOOK}]}
    document = client.get("textDocument") or {}
    has_inline = "inlineCompletion" in document
    can_register = bool((document.get("completion") or {}).get("dynamicRegistration"))
    settings = section(params.get("initializationOptions"))
    wanted = cast(Mapping[str, Any], settings).get("completion") if isinstance(settings, Mapping) else None
    if offers_menu(wanted, has_inline=has_inline, can_register=can_register):
        offered["completionProvider"] = {}
    return offered


def offers_menu(wanted: object, *, has_inline: bool, can_register: bool) -> bool:
    """Whether the answer to `initialize` offers completion: where suggestions go into the menu, or may later and the
    client can't register completion then."""
    return wants_menu(wanted, has_inline=has_inline) or (wanted != "off" and not can_register)


def wants_menu(wanted: object, *, has_inline: bool) -> bool:
    """Whether suggestions go into the completion menu: if the client has no inline completion, or the user wants it.

    `wanted`: the setting `completion`; invalid values count as "auto".
    """
    return wanted == "on" or (wanted != "off" and not has_inline)


def _encoding(client: Mapping[str, Any]) -> str:
    offered = (client.get("general") or {}).get("positionEncodings") or ()
    return next((encoding for encoding in offered if encoding in _ENCODINGS), "utf-16")
