"""Messages and files that are almost right: plain values with a few changes, and texts from a grammar's words."""

from __future__ import annotations

import random
from typing import Any

_NUMBERS = (-1, 0, 1, 2**31, 2**53 + 1, 2**64, -(2**63), 1e308, float("nan"), float("inf"), -0.0, 10**40)
_STRINGS = ("", "\0", "\ud83d", "😋", "../../x", "a" * 10_000, "%s%n", "\u202e", "[" * 2_000, "null", "{}")
_DEPTHS, _DEPTHS_OF_BYTES = (50, 400), (50, 5_000, 100_000)
_MOST_CHANGES = 4


class _Deep(list[Any]):
    """Lists in lists; too deep to be walked through."""

    def __init__(self, depth: int) -> None:
        inner: list[Any] = []
        for _ in range(depth):
            inner = [inner]
        super().__init__(inner)


def mutated(tree: Any, chance: random.Random) -> Any:
    """A copy of a tree of dicts, lists and scalars in which up to four places say something else."""
    tree = _copy(tree)
    for _ in range(chance.randint(1, _MOST_CHANGES)):
        holders = [(holder, key) for holder, key in _places(tree) if not isinstance(holder, _Root)]
        if not holders:
            return _value(None, chance)
        holder, key = chance.choice(holders)
        _change(holder, key, holders, chance)
    return tree


def torn(data: bytes, chance: random.Random) -> bytes:
    """Bytes with a few of them changed, dropped, doubled or cut off."""
    out = bytearray(data)
    for _ in range(chance.randint(0, _MOST_CHANGES)):
        at = chance.randrange(len(out) + 1)
        match chance.randrange(5):
            case 0:
                out[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del out[at : at + chance.randint(1, 8)]
            case 2 if chance.random() < 0.1:
                out[at:at] = chance.choice((b"[", b'{"a":', b"\x91", b"(")) * chance.choice(_DEPTHS_OF_BYTES)
            case 2 | 3:
                out[at:at] = out[max(at - chance.randint(1, 64), 0) : at]
            case _:
                del out[at : None if chance.random() < 0.2 else at + 1]
    return bytes(out)


def sentence(words: tuple[str, ...], chance: random.Random, most: int = 60) -> str:
    """Words of a grammar in any order; one of them now and then very often."""
    said: list[str] = []
    for _ in range(chance.randint(0, most)):
        said.append(chance.choice(words) * (chance.choice((30, 3_000)) if chance.random() < 0.03 else 1))
    return "".join(said)


def _copy(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _copy(value) for key, value in tree.items()}
    return [_copy(value) for value in tree] if type(tree) is list else tree


def _is_there(holder: Any, key: Any) -> bool:
    """Whether no earlier change took it away."""
    return key in holder if isinstance(holder, dict) else key < len(holder)


class _Root:
    """Holds the tree itself."""


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = [(_Root(), None)]
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        items = each.items() if isinstance(each, dict) else enumerate(each) if type(each) is list else ()
        for key, value in items:
            found.append((each, key))
            waiting.append(value)
    return found


def _change(holder: Any, key: Any, places: list[tuple[Any, Any]], chance: random.Random) -> None:
    if not _is_there(holder, key):
        return
    match chance.randrange(7):
        case 0:
            del holder[key]
        case 1:
            other, where = chance.choice(places)
            if not isinstance(other, _Root) and _is_there(other, where):
                holder[key] = _copy(other[where])
        case 2 if isinstance(holder, dict):
            holder[chance.choice([*_STRINGS, "id", "uri", "type", "extra"])] = holder[key]
        case 3 if isinstance(holder, list):
            holder.extend([holder[key]] * chance.choice((1, 10, 300)))
        case 4:
            holder[key] = _Deep(chance.choice(_DEPTHS))
        case _:
            holder[key] = _value(holder[key], chance)


def _value(old: Any, chance: random.Random) -> Any:
    if isinstance(old, bool):
        return chance.choice((not old, *_NUMBERS))
    if isinstance(old, int | float) and chance.random() < 0.7:
        return chance.choice((*_NUMBERS, old + 1, -old, str(old)))
    if isinstance(old, str) and chance.random() < 0.7:
        return chance.choice((*_STRINGS, old * 2, old[:-1], old.upper()))
    return chance.choice((None, True, [], {}, *_NUMBERS, *_STRINGS))
