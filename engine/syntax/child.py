"""The process that checks syntax for an engine: `python -P -m engine.syntax.child`, connected by pipes.

Text can make a parser crash, run for ever or take all memory: then the process ends, or is ended, and the engine starts
another. It imports no model library, opens no file but grammars, and keeps the trees of some documents.
"""

from __future__ import annotations

import faulthandler
import gc
import signal
import sys
import time
from types import TracebackType

from engine.common.errors import unquoted
from engine.syntax.checks import Checks
from engine.syntax.questions import TryEdits, ValidateFills
from engine.syntax.wire import packed_reply, read_frame, unpacked_question

_MOST_NBYTES = 2 << 30
"""Most address space; a tree takes seventy times its text."""
_WARM = ValidateFills(
    text="def f(values):\n    return sorted()\n", start=32, end=32, language="python", fills=("values) + (",)
)


def main() -> None:
    """Answer questions until the pipe ends."""
    faulthandler.enable()
    sys.excepthook = _last_words
    _limit()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # What prints by mistake must not break the wire.
    sys.stdout = sys.stderr
    checks = Checks()
    # Through code and patterns for the first time is several times as slow as ever after.
    checks.answer(_WARM, 1000)
    gc.freeze()
    while (message := read_frame(source)) is not None:
        question = unpacked_question(message)
        _end_after(message["limit_ms"])
        began = time.thread_time()
        reply = checks.answer(question, message["budget_ms"])
        _end_after(0)
        # What is asked a slice at a time uses up its budget by right.
        late = not isinstance(question, TryEdits) and (time.thread_time() - began) * 1000 >= message["budget_ms"]
        sink.write(packed_reply(reply, out_of_time=late))
        sink.flush()


def _last_words(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(f"{unquoted(error)}\n")


def _limit() -> None:
    """Bound the memory, and write no core dump, which would hold code."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = _MOST_NBYTES if most == resource.RLIM_INFINITY else min(most, _MOST_NBYTES)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _end_after(ms: float) -> None:
    """Have the system end this process after so many processor seconds, unless it is called again (0: never). An engine
    that was killed ends no child, and a parser may never stop."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, ms / 1000)


if __name__ == "__main__":
    main()
