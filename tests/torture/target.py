"""What a part of the harness is made of, and what it found."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

SLOW_S = 2.0
"""What takes longer counts as a hang."""
_KEPT = 5
_SHOWN_CHARACTERS = 10_000
"""Of what was given: enough to try it again with."""


@dataclass(slots=True, kw_only=True)
class Analysis:
    """Of one target."""

    target: str
    seed: int
    examples: int = 0
    hangs: int = 0
    crashes: int = 0
    slowest_ms: float = 0.0
    told: list[str] = field(default_factory=list[str])
    """The first few things that went wrong, crashes before hangs."""

    @property
    def well(self) -> bool:
        """Whether nothing crashed, hung, or did not even begin."""
        return self.examples > 0 and not self.crashes and not self.hangs

    def attempt(self, work: Callable[[], object], accepted: tuple[type[BaseException], ...], shown: object) -> None:
        """Do something that may raise only what is accepted, and not for long; `shown` is what it was given."""
        began, (ran_s, waited_s) = time.perf_counter(), _spent_s()
        try:
            work()
        except accepted:
            pass
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            self.crashes += 1
            frame = traceback.extract_tb(error.__traceback__)[-1]
            self._tell(0, f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})", shown)
        elapsed_s, now = time.perf_counter() - began, _spent_s()
        # A busy machine is no hang; of several threads that waited for a core, each counts.
        took_s = max(elapsed_s - (now[1] - waited_s), min(now[0] - ran_s, elapsed_s))
        self.examples += 1
        self.slowest_ms = max(self.slowest_ms, took_s * 1000)
        if took_s > SLOW_S:
            self.hangs += 1
            self._tell(self.crashes, f"took {took_s:.1f} s", shown)

    def _tell(self, at: int, what: str, shown: object) -> None:
        self.told.insert(at, f"{' '.join(what.split())[:300]} | {str(shown)[:_SHOWN_CHARACTERS]}")
        del self.told[_KEPT:]


def _spent_s(process: str = "self") -> tuple[float, float]:
    """Seconds that the threads of a process, and of those that it began, had a core and waited for one."""
    ran_s = waited_s = 0.0
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            ran_ns, waited_ns, _ = map(int, (task / "schedstat").read_text().split())
            inner = [_spent_s(each) for each in (task / "children").read_text().split()]
            ran_s += ran_ns / 1e9 + sum(ran for ran, _ in inner)
            waited_s += waited_ns / 1e9 + sum(waited for _, waited in inner)
    except OSError:
        pass  # it ended meanwhile, or this is another system
    return ran_s, waited_s


Example = Callable[[Analysis], None]
"""Draws one example and tries it; what it draws from is bound to it."""
