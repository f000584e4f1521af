"""Seeded damage to fills: what a model gets wrong when it gets syntax wrong."""

from __future__ import annotations

import random
import re

_TOKEN = re.compile(r"\w+|[^\w\s]|\s+")
_KEYWORDS = ("if", "for", "return", "else", "class", "in", "while", "try", "with", "import", "await", "yield")


def damage(fill: str, rng: random.Random) -> str:
    """The fill with a token dropped, doubled or added, or its end cut off; it may still be good code."""
    tokens = _TOKEN.findall(fill)
    place = rng.randrange(len(tokens) + 1)
    match rng.randrange(6):
        case 0:
            return _without(tokens, "()[]{}", rng)
        case 1:
            return _without(tokens, "'\"`", rng)
        case 2:
            return _without(tokens, ":;,", rng)
        case 3:
            return "".join([*tokens[:place], rng.choice("()[]{}'\""), *tokens[place:]])
        case 4:
            return "".join([*tokens[:place], f" {rng.choice(_KEYWORDS)} ", *tokens[place:]])
        case _:
            return "".join(tokens[:place])


def _without(tokens: list[str], kind: str, rng: random.Random) -> str:
    places = [at for at, token in enumerate(tokens) if token in kind] or list(range(len(tokens)))
    gone = rng.choice(places)
    return "".join(token for at, token in enumerate(tokens) if at != gone)
