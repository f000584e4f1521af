"""Checks of an engine's options before anything starts or ends."""

from __future__ import annotations

from msgspec.structs import replace

from engine.common.credentials import http_token
from engine.common.errors import BadInput
from engine.common.http_address import http_address
from engine.common.names import AUTO, check_device, rooted
from engine.common.processes import at_home, working_dir
from engine.models.addressed import named
from engine.models.checkpoints.catalog import find
from engine.models.checkpoints.choice import resolved
from engine.server.http.prerequisites import check_extra
from engine.server.settings import EngineOptions


def chosen_options(options: EngineOptions) -> EngineOptions:
    """The options with absolute names, checked. Raises BadInput."""
    chosen = named_from_here(options)
    check_options(chosen)
    return chosen


def named_from_here(options: EngineOptions) -> EngineOptions:
    """The same, with names that mean wherever they are read what they mean here: an engine stands in no folder of the
    user's. Raises BadInput for one that none can be told."""
    file = options.http_token_file and str(working_dir() / at_home(options.http_token_file))
    model = rooted(resolved(options.model), working_dir())
    named = replace(options, model=model, auto=options.model == AUTO, http_token_file=file)
    for name in (named.model, named.http_token_file):
        # Options and messages are UTF-8.
        if name.encode(errors="ignore").decode() != name:
            raise BadInput(
                f"The name {name!r} is no UTF-8, and an engine can't be asked about it: give it another one."
            )
    return named


def check_options(options: EngineOptions) -> None:
    """Raises BadInput for options that no engine can run with here."""
    if options.http:
        check_extra()
        http_token(http_address(options.http), options.http_token_file)
    check_device(options.device)
    if named(options.model).opened is None:
        find(resolved(options.model))
