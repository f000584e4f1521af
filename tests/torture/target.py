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
        began, waited = time.perf_counter(), _waited_for_a_core_s()
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
        took_s = time.perf_counter() - began - (_waited_for_a_core_s() - waited)
        self.examples += 1
        self.slowest_ms = max(self.slowest_ms, took_s * 1000)
        if took_s > SLOW_S:
            self.hangs += 1
            self._tell(self.crashes, f"took {took_s:.1f} s", shown)

    def _tell(self, at: int, what: str, shown: object) -> None:
        self.told.insert(at, f"{' '.join(what.split())[:300]} | {str(shown)[:_SHOWN_CHARACTERS]}")
        del self.told[_KEPT:]


def _waited_for_a_core_s() -> float:
    """How long this thread was ready to run while others did: a busy machine is no hang."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


Example = Callable[[Analysis], None]
"""Draws one example and tries it; what it draws from is bound to it."""
