"""The sandbox's process: `python -I -S __main__.py ROLE LIMITS FD...` confines itself, then plays its role."""

from __future__ import annotations

import json
import os
import sys


def main(role: str, limits: str, fds: list[int]) -> None:
    """Confine this process and play a role. Whoever started it must not trust what it says after `confine`."""
    # Isolated Python knows neither this package nor the folder of this script.
    here = os.path.realpath(__file__)
    sys.path.insert(0, here.removesuffix(os.path.join("engine", "lab", "eval", "inside", "__main__.py")))
    from engine.lab.eval.inside import solution, tester
    from engine.lab.eval.inside.confine import SandboxLimits, confine

    play = {
        "program": solution.play_program,
        "command": solution.play_command,
        "solution": solution.play,
        "tester": tester.play,
    }[role]
    del sys.path[0]
    confine(SandboxLimits(**json.loads(limits)))
    play(*fds)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [int(fd) for fd in sys.argv[3:]])
