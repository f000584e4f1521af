"""What an engine is started with, judged before anything starts or ends."""

from __future__ import annotations

from dataclasses import replace

from engine.core.credentials import http_token
from engine.core.errors import BadInput
from engine.core.http_address import http_address
from engine.core.names import ORACLE, check_device, rooted
from engine.core.processes import at_home, working_dir
from engine.core.server_address import REMOTE, server_address
from engine.loader.catalog import find
from engine.server.http.opening import check_extra
from engine.server.settings import EngineOptions


def chosen_options(options: EngineOptions) -> EngineOptions:
    """The same, with names that mean what they mean here wherever they are read. Raises BadInput for what no engine
    could run here."""
    chosen = replace(options, model=rooted(options.model, working_dir()))
    if chosen.http_token_file:
        # The engine stands in no folder of the user's.
        chosen = replace(chosen, http_token_file=str(working_dir() / at_home(chosen.http_token_file)))
    for name in (chosen.model, chosen.http_token_file):
        # Messages and these options themselves are UTF-8.
        if name.encode(errors="ignore").decode() != name:
            raise BadInput(
                f"The name {name!r} is no UTF-8, and an engine can't be asked about it: give it another one."
            )
    if chosen.http:
        check_extra()
        http_token(http_address(chosen.http), chosen.http_token_file)
    check_device(chosen.device)
    if chosen.model.startswith(REMOTE):
        server_address(chosen.model)
    elif not chosen.model.startswith(ORACLE):
        find(chosen.model)
    return chosen
