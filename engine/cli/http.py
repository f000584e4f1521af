"""`dg-lsp http`: the engine that editors share, with a door for clients that speak HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.engine import DeviceOption, ModelOption, ask_status, run_here, token_file
from engine.core.errors import EngineError
from engine.core.exits import one_line_errors
from engine.core.http_address import PORT, HttpAddress, http_address
from engine.server.http.opening import bound
from engine.server.options import chosen_options
from engine.server.settings import EngineOptions, with_given, write_options

_DEFAULT = EngineOptions()


@one_line_errors()
def http(
    host: Annotated[str, typer.Option(help="The address to listen on; one that others can reach needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: any that is free.")] = PORT,
    # As messages that other commands have, too, name it.
    token: Annotated[str | None, token_file("--token-file", "--http-token-file")] = None,
    model: ModelOption = _DEFAULT.model,
    device: DeviceOption = _DEFAULT.device,
    detach: Annotated[bool, typer.Option("--detach", help="Run in the background; return when it answers.")] = False,
) -> None:
    """Run the engine with its HTTP door open: `POST /infill` as llama.cpp's server has it, `POST /v1/completions` as
    OpenAI's. A token comes from DG_LSP_HTTP_TOKEN or --token-file."""
    # Who starts one in the background needs none of the engine.
    from engine.server.launch import start_detached

    wanted = str(HttpAddress(host=host, port=port))
    address = http_address(wanted)
    settings = chosen_options(with_given(_DEFAULT, model=model, device=device, http=wanted, http_token_file=token))
    running = ask_status()
    if running is None:
        if not detach:
            bound(address).close()
            where = f"http://{wanted}" if port else f"at a free port of {host}, which `dg-lsp engine status` names"
            typer.echo(f"Serving {where}; Ctrl-C ends it.")
            run_here(settings)  # it comes back only where another engine was first
        else:
            start_detached(write_options(settings))
        running = ask_status()
    opened = running.http if running else ""
    if opened != wanted and not (opened and port == 0):
        raise EngineError(
            f"An engine runs already, {f'with its door at {opened}' if opened else 'without this door'}: "
            f"`dg-lsp engine restart --http {wanted}` opens it there, for all editors."
        )
    typer.echo(f"The engine serves http://{opened}.")
