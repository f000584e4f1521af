"""An edit in a program of the toy language, whose text alone does not tell whether it belongs elsewhere, too: what the
model reads there does."""

from __future__ import annotations

from engine.common.request import FillRequest, RecentEdit

_PROGRAM = "c = 4\nd = c * 7\ne = d * 7\nf = e * 7\ng = f * 7\nh = {} * 7\n"


def _behind(old: str, new: str, name: str) -> FillRequest:
    edit = RecentEdit(path="a.py", old=old, new=new, start=0)
    return FillRequest(task="next", prefix=new, suffix=_PROGRAM.format(name), language="python", edits=(edit,))


BELONGS = _behind("b = zz * 7\n", "b = g * 7\n", "zz")
"""The last line reads as all others do once it has the same name."""
DOES_NOT = _behind("b = a * 7\n", "b = a\n", "g")
"""Lines that the rule holds for would lose it."""
