"""`python -m engine.server [--detach] OPTIONS`: how programs start the engine, its options as one JSON object.

People have `dg-lsp engine run`, whose command line takes longer to import than all that an engine needs to answer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from engine.core.errors import BadInput, EngineError
from engine.core.exits import exit_code, in_one_line


def main(arguments: Sequence[str]) -> int:
    """With `--detach`, return when an engine answers, else be it, where that can be."""
    *flags, given = arguments or ["{}"]
    try:
        if flags not in ([], ["--detach"]):
            raise BadInput(f"There is no {' '.join(flags)}: `dg-lsp engine run --help` has what there is.")
        # Neither needs to wait for what the other imports.
        if "--detach" in flags:
            from engine.server.launch import start_detached

            start_detached(given)
        else:
            from engine.server.options import check_options
            from engine.server.process import run
            from engine.server.settings import read_options

            options = read_options(given)
            check_options(options)
            run(options)
    except EngineError as error:
        sys.stderr.write(f"{in_one_line(error)}\n")
        return exit_code(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
