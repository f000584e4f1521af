"""Whether suggestions go into the completion menu, and how the client inserts them from there."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from lsprotocol.types import (
    TEXT_DOCUMENT_COMPLETION,
    CompletionRegistrationOptions,
    InitializeParams,
    InsertTextMode,
    Registration,
    RegistrationParams,
)

from dg_lsp.config.settings import Settings
from dg_lsp.protocol.initialize import NAME, offers_menu, wants_menu

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


def item_insertion(params: InitializeParams) -> ItemInsertion:
    """How the client inserts items, by its capabilities.

    Neovim's own completion inserts no plain text of several lines. Neovim's plugins that do so announce how they
    indent.
    """
    document = params.capabilities.text_document
    item = document and document.completion and document.completion.completion_item
    modes = item and item.insert_text_mode_support and item.insert_text_mode_support.value_set
    if modes:
        return ItemInsertion.PLAIN if InsertTextMode.AsIs in modes else ItemInsertion.INDENTED
    is_neovims = params.client_info is not None and params.client_info.name == "Neovim"
    return ItemInsertion.SNIPPET if is_neovims and item and item.snippet_support else ItemInsertion.PLAIN


class Menu:
    """The completion menu of one client.

    `register` registers completion with a client that was not offered it in the answer to `initialize`; `complain` is
    called where the client can't do that.
    """

    def __init__(self, register: Callable[[RegistrationParams], object], complain: Callable[[str], None]) -> None:
        self._register = register
        self._complain = complain
        self.insertion = ItemInsertion.PLAIN
        self._has_inline = False
        self._can_register = False
        self._offered = False

    def begin(self, params: InitializeParams, settings: Settings) -> bool:
        """Take the client's capabilities; return whether the answer to `initialize` offers completion."""
        document = params.capabilities.text_document
        completion = document and document.completion
        self.insertion = item_insertion(params)
        self._has_inline = bool(document and document.inline_completion)
        self._can_register = bool(completion and completion.dynamic_registration)
        self._offered = offers_menu(settings.completion, has_inline=self._has_inline, can_register=self._can_register)
        return self._offered

    def wanted(self, settings: Settings) -> bool:
        """Whether suggestions go into the completion menu."""
        return wants_menu(settings.completion, has_inline=self._has_inline)

    def offer(self, settings: Settings) -> None:
        """Register completion with the client, once, if the user wants suggestions in the menu."""
        if self._offered or not self.wanted(settings):
            return
        self._offered = True
        if self._can_register:
            self._register(REGISTRATION)
        else:
            self._complain(TOO_LATE)
