"""Whether suggestions go into the completion menu, and how the client inserts them from there."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from lsprotocol.types import (
    TEXT_DOCUMENT_COMPLETION,
    CompletionRegistrationOptions,
    InsertTextMode,
    Registration,
    RegistrationParams,
)

from dg_lsp.config.settings import Settings
from dg_lsp.protocol.initialize import NAME, ClientHello, offers_menu, wants_menu

REGISTRATION = RegistrationParams(
    registrations=[
        Registration(
            id=f"{NAME} completion",
            method=TEXT_DOCUMENT_COMPLETION,
            register_options=CompletionRegistrationOptions(),
        )
    ]
)
TOO_LATE = (
    "The setting 'completion' was changed too late to show suggestions in the completion menu: set it in the editor's "
    "initializationOptions and restart the editor."
)


class ItemInsertion(Enum):
    """How a client inserts an accepted item of the completion menu."""

    PLAIN = "The text replaces the item's range."
    INDENTED = "The same, with the cursor line's indent added to each line after the first."
    SNIPPET = "A snippet is inserted before the text after the cursor and indented; of plain text, one word or line."

    @property
    def mode(self) -> InsertTextMode:
        return InsertTextMode.AsIs if self is ItemInsertion.PLAIN else InsertTextMode.AdjustIndentation


def item_insertion(hello: ClientHello) -> ItemInsertion:
    """How the client inserts items, by its capabilities.

    Neovim's own completion inserts no plain text of several lines. Neovim's plugins that do so announce how they
    indent.
    """
    item = ("textDocument", "completion", "completionItem")
    modes = hello.can(*item, "insertTextModeSupport", "valueSet")
    if modes and isinstance(modes, list):
        return ItemInsertion.PLAIN if InsertTextMode.AsIs in modes else ItemInsertion.INDENTED
    takes_snippets = bool(hello.can(*item, "snippetSupport"))
    is_neovims = hello.said("clientInfo", "name") == "Neovim"
    return ItemInsertion.SNIPPET if is_neovims and takes_snippets else ItemInsertion.PLAIN


class Menu:
    """The completion menu of one client.

    `register` registers completion with a client that was not offered it in the answer to `initialize`; `complain` is
    called where the client can't do that.
    """

    def __init__(self, register: Callable[[RegistrationParams], object], complain: Callable[[str], None]) -> None:
        self._register = register
        self._complain = complain
        self.insertion = ItemInsertion.PLAIN
        self._hello = ClientHello({})
        self._offered = False

    def begin(self, hello: ClientHello, settings: Settings) -> None:
        """Take the client's capabilities."""
        self._hello, self.insertion = hello, item_insertion(hello)
        self._offered = offers_menu(settings.completion, hello)

    def wanted(self, settings: Settings) -> bool:
        """Whether suggestions go into the completion menu."""
        return wants_menu(settings.completion, self._hello)

    def offer(self, settings: Settings) -> None:
        """Register completion with the client, once, if the user wants suggestions in the menu."""
        if self._offered or not self.wanted(settings):
            return
        self._offered = True
        if self._hello.can_register:
            self._register(REGISTRATION)
        else:
            self._complain(TOO_LATE)
