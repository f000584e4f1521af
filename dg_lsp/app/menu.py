"""Whether suggestions go into the completion menu, and whether the client knows that it may ask for them there."""

from __future__ import annotations

from collections.abc import Callable

from lsprotocol.types import (
    TEXT_DOCUMENT_COMPLETION,
    CompletionRegistrationOptions,
    InitializeParams,
    Registration,
    RegistrationParams,
)

from dg_lsp.config.settings import Settings
from dg_lsp.handlers.completion import Taking, taking
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
    "The setting 'completion' asks for suggestions in the completion menu, which was off when this editor started: "
    "change it in its initializationOptions."
)


class Menu:
    """The completion menu of one client.

    `register` tells the client what the answer to `initialize` did not tell it; `complain` is told where that is
    impossible.
    """

    def __init__(self, register: Callable[[RegistrationParams], object], complain: Callable[[str], None]) -> None:
        self._register = register
        self._complain = complain
        self.taking = Taking.AS_IT_IS
        self._has_inline = False
        self._can_register = False
        self._offered = False

    def begin(self, params: InitializeParams, settings: Settings) -> bool:
        """Take what the client can do; whether the answer to `initialize` offers it the menu."""
        document = params.capabilities.text_document
        completion = document and document.completion
        self.taking = taking(params)
        self._has_inline = bool(document and document.inline_completion)
        self._can_register = bool(completion and completion.dynamic_registration)
        self._offered = offers_menu(settings.completion, has_inline=self._has_inline, can_register=self._can_register)
        return self._offered

    def wanted(self, settings: Settings) -> bool:
        return wants_menu(settings.completion, has_inline=self._has_inline)

    def offer(self, settings: Settings) -> None:
        """See to it, once, that a client whose user wants suggestions in the menu asks for them."""
        if self._offered or not self.wanted(settings):
            return
        self._offered = True
        if self._can_register:
            self._register(REGISTRATION)
        else:
            self._complain(TOO_LATE)
