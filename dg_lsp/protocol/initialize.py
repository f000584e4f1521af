"""The answer to `initialize`, sent before anything heavy is imported.

An editor waits for this answer, and importing the protocol's types takes longer than the rest of a start. So the answer
is plain JSON here, and read from plain JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, cast

from dg_lsp import __version__
from dg_lsp.config.sections import section

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
_UTF_16_ONLY = "Github Copilot LSP for Neovim"
"""A plugin that sends positions in UTF-16 whatever encoding was agreed on. Neovim, which sends its document changes,
keeps to the agreement, so UTF-16 is agreed on."""
_Encoding = Literal["utf-8", "utf-16", "utf-32"]
_ENCODINGS: tuple[_Encoding, ...] = ("utf-16", "utf-8", "utf-32")


class ClientHello:
    """The parameters of `initialize`: what a client says of itself. What is malformed counts as not said."""

    def __init__(self, params: object) -> None:
        self._params = params
        self.options: object = self.said("initializationOptions")

    def said(self, *keys: str) -> Any:
        """What is under these keys; None: nothing."""
        held: Any = self._params
        for key in keys:
            held = held.get(key) if isinstance(held, dict) else None
        return held

    def can(self, *keys: str) -> Any:
        """What is under these keys of the client's capabilities."""
        return self.said("capabilities", *keys)

    @property
    def has_inline(self) -> bool:
        """Whether the client has inline completion: it names it, even as null (lsp-mode)."""
        document = self.can("textDocument")
        return isinstance(document, dict) and "inlineCompletion" in document

    @property
    def encoding(self) -> _Encoding:
        """What positions count in: of those that are known, the one that the client likes best."""
        if self.said("initializationOptions", "editorPluginInfo", "name") == _UTF_16_ONLY:
            return "utf-16"
        offered = self.can("general", "positionEncodings")
        offers = cast(list[object], offered) if isinstance(offered, list) else []
        known: list[_Encoding] = [each for offer in offers for each in _ENCODINGS if offer == each]
        return known[0] if known else "utf-16"

    @property
    def is_copilots(self) -> bool:
        """Whether its options are those for Copilot's language server."""
        return isinstance(self.options, dict) and "editorInfo" in self.options

    @property
    def can_register(self) -> bool:
        """Whether completion can be registered later."""
        return bool(self.can("textDocument", "completion", "dynamicRegistration"))


def answer_to(message: Any) -> tuple[object, bytes] | None:
    """The id of an `initialize` request and the body of the answer; None for any other message."""
    try:
        id_, params = message["id"], message["params"]
        if message["jsonrpc"] != "2.0" or message["method"] != "initialize" or type(id_) not in (int, str):
            return None
    except (KeyError, TypeError):
        return None
    if not isinstance(params, dict):
        return None
    return id_, json.dumps({"id": id_, "jsonrpc": "2.0", "result": result(ClientHello(params))}).encode()


def result(hello: ClientHello) -> dict[str, Any]:
    return {"capabilities": capabilities(hello), "serverInfo": {"name": NAME, "version": __version__}}


def capabilities(hello: ClientHello) -> dict[str, Any]:
    offered: dict[str, Any] = {
        "positionEncoding": hello.encoding,
        "textDocumentSync": {"openClose": True, "change": 2},
        "inlineCompletionProvider": {},
        "codeActionProvider": {"codeActionKinds": list(ACTION_KINDS)},
        "executeCommandProvider": {"commands": list(COMMANDS)},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}, "fileOperations": {}},
    }
    if hello.can("notebookDocument") not in (None, False):
        # Of any kind, with all cells.
        offered["notebookDocumentSync"] = {"notebookSelector": [{"notebook": "*"}]}
    settings = section(hello.options)
    wanted = cast(Mapping[str, Any], settings).get("completion") if isinstance(settings, Mapping) else None
    if offers_menu(wanted, hello):
        offered["completionProvider"] = {}
    return offered


def offers_menu(wanted: object, hello: ClientHello) -> bool:
    """Whether the answer to `initialize` offers completion: where suggestions go into the menu, or may later and the
    client can't register completion then."""
    return wants_menu(wanted, hello) or (wanted != "off" and not hello.can_register)


def wants_menu(wanted: object, hello: ClientHello) -> bool:
    """Whether suggestions go into the completion menu: if the client has no inline completion, or the user wants it.

    `wanted`: the setting `completion`; invalid values count as "auto".
    """
    return wanted == "on" or (wanted != "off" and not hello.has_inline)
