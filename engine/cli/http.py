"""`dg-lsp http`: runs the engine with its HTTP server."""

from __future__ import annotations

import click

from engine.cli.engine import ask_status, run_here, run_options, token_file_option
from engine.common.errors import EngineError
from engine.common.exits import one_line_errors
from engine.common.http_address import PORT, HttpAddress, http_address
from engine.server.http.prerequisites import bound
from engine.server.options import chosen_options
from engine.server.settings import EngineOptions, with_given, write_options

_DEFAULT = EngineOptions()


@click.command()
@click.option(
    "--host", default="127.0.0.1", help="The address to listen on; one that other machines can reach needs a token."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, help="The port; 0: any free one.")
# The name that shared messages use.
@token_file_option("--token-file", "--http-token-file", "token")
@run_options
@one_line_errors()
def http(host: str, port: int, token: str | None, model: str, device: str, detach: bool) -> None:
    """Run the engine with an HTTP server: `POST /infill` as in llama.cpp's server, `POST /v1/completions` as in
    OpenAI's. The token is read from DG_LSP_HTTP_TOKEN or --token-file."""
    # Not needed to start one in the background.
    from engine.server.launch import start_detached

    wanted = str(HttpAddress(host=host, port=port))
    address = http_address(wanted)
    settings = chosen_options(with_given(_DEFAULT, model=model, device=device, http=wanted, http_token_file=token))
    running = ask_status()
    if running is None:
        if not detach:
            bound(address).close()
            where = f"http://{wanted}" if port else f"on a free port of {host}; `dg-lsp engine status` shows it"
            click.echo(f"Serving {where}; Ctrl-C ends it.")
            run_here(settings)  # returns only if another engine runs already
        else:
            start_detached(write_options(settings))
        running = ask_status()
    opened = running.http if running else ""
    if opened != wanted and not (opened and port == 0):
        raise EngineError(
            f"An engine runs already, {f'with its HTTP server at {opened}' if opened else 'without an HTTP server'}: "
            f"`dg-lsp engine restart --http {wanted}` starts it there, for all editors."
        )
    click.echo(f"The engine serves http://{opened}.")
