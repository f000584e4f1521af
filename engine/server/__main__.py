"""`python -m engine.server [--detach] OPTIONS`: how programs start the engine, its options as one JSON object.

People have `dg-lsp engine run`, whose command line takes longer to import than all that an engine needs to answer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from engine.common.errors import BadInput, EngineError
from engine.common.exits import exit_code, in_one_line


def main(arguments: Sequence[str]) -> int:
    """With `--detach`, return when an engine answers, else be it, where that can be."""
    *flags, given = arguments or ["{}"]
    try:
        if flags not in ([], ["--detach"]):
            raise BadInput(f"There is no {' '.join(flags)}: `dg-lsp engine run --help` has what there is.")
        _start(given) if flags else _be(given)
    except EngineError as error:
        sys.stderr.write(f"{in_one_line(error)}\n")
        return exit_code(error)
    return 0


def _start(given: str) -> None:
    from engine.server.launch import start, start_detached

    if sys.platform == "linux":
        from engine.server.forked import ForkedEngine

        start(lambda said: ForkedEngine(lambda: main([given]), said))
    else:
        start_detached(given)


def _be(given: str) -> None:
    from engine.server.options import check_options
    from engine.server.process import run
    from engine.server.settings import read_options

    options = read_options(given)
    check_options(options)
    run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
