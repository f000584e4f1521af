"""The line at which a gap ends, as tokens: what a causal model writes next if nothing is missing any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.common.sequences import overlaps


@dataclass(frozen=True, slots=True, kw_only=True)
class NextLine:
    """The beginning of the line after the cursor."""

    ids: Sequence[int] = ()
    """Enough tokens to tell the line from others; none where the gap ends within a line."""
    least: float = 0.0
    """Log-probability from which the line ends the gap although another token is likelier; 0: never."""
    spelled: Callable[[int], bytes] = lambda token: b""
    """The bytes of a token."""

    def begun(self, written: Sequence[int]) -> int | None:
        """The number of a gap's last tokens that are the first ones of this line; None where it can't have begun: no
        line of the gap has ended right before them, or only blank ones have."""
        for count in (*overlaps(written, self.ids), 0) if self.ids else ():
            before = written[: len(written) - count]
            if before and self.spelled(before[-1]).endswith(b"\n"):
                return count if any(self.spelled(token).strip() for token in before) else None
        return None


NO_LINE = NextLine()
