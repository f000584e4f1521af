"""`dg-lsp` and `python -m dg_lsp`."""

from __future__ import annotations

import sys


def main() -> None:
    """The console script."""
    if sys.argv[1:] == ["serve"]:
        # This is how editors start it: `initialize` is answered before the command line could even be imported.
        from dg_lsp.app.standard_io import serve
        from engine.common.exits import escape_unencodable

        escape_unencodable()
        try:
            serve()
        except KeyboardInterrupt:
            sys.exit(130)
    from dg_lsp import cli

    cli.main()


if __name__ == "__main__":
    main()
