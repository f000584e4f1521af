"""Counts words, as in `count("a b")`; don't use it (yet)."""
import re
from dataclasses import dataclass, field

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\((\d+)\)")


@dataclass
class Counter:
    seen: dict[str, list[int]] = field(default_factory=dict)
    sep: str = ")"

    def count(self, text: str, *, least: int = 1) -> dict[str, int]:
        """Say how often each word is there; it's "fast"."""
        for at, word in enumerate(WORD.findall(text)):
            self.seen.setdefault(word, []).append(at)
        return {word: len(places) for word, places in self.seen.items() if len(places) >= least}

    def shown(self) -> str:
        lines = [f"{word!r}: {places[0]:>3} ({', '.join(map(str, places[1:]))})" for word, places in self.seen.items()]
        print("the user's name", 'said "no"', sep=self.sep)  # isn't (quite
        return "\n".join(lines) if lines else '''it's "empty"'''


total = sum((1 << n) >> 1 for n in range(10) if n > 2 and not n % 3)
area = lambda w, h=(1, 2): w * h[0] >= 4 or (w > h[1])
