"""Plain values as lines of JSON with their types. What comes from a solution can be compared by its test, and runs
nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

_COLLECTIONS: dict[str, type[Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


def pack(value: Any) -> bytes:
    """A value as one line. Raises TypeError for a value that is not plain, ValueError or RecursionError for one too
    deep."""
    return json.dumps(value).encode() + b"\n"


def encode(value: Any) -> Any:
    """A value of built-in types as JSON. Raises TypeError for any other."""
    if value is None or isinstance(value, bool | str):
        # A string of a subclass may say something else than it is.
        return str.__str__(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return {"int": hex(int.__index__(value))}
    if isinstance(value, float):
        return {"float": float.hex(value)}
    if isinstance(value, complex):
        return {"complex": [float.hex(value.real), float.hex(value.imag)]}
    if isinstance(value, bytes | bytearray):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(held)] for key, held in dict.items(value)]}
    for name, kind in _COLLECTIONS.items():
        if isinstance(value, kind):
            return {name: [encode(held) for held in kind.__iter__(value)]}
    raise TypeError(f"a value of the type {type(value).__name__} can't be compared")


def decode(encoded: Any) -> Any:
    """The inverse of `encode`. Raises ValueError for anything else."""
    if encoded is None or isinstance(encoded, bool | str):
        return encoded
    if not isinstance(encoded, dict) or len(encoded) != 1:
        raise ValueError("not an encoded value")
    ((name, held),) = encoded.items()
    if name in _COLLECTIONS:
        return _COLLECTIONS[name](decode(each) for each in held)
    if name == "dict":
        return {decode(key): decode(value) for key, value in held}
    scalars: dict[str, Callable[[Any], Any]] = {
        "int": lambda text: int(text, 16),
        "float": float.fromhex,
        "complex": lambda parts: complex(*map(float.fromhex, parts)),
        "bytes": bytes.fromhex,
    }
    if name not in scalars:
        raise ValueError(f"no value is called {name}")
    return scalars[name](held)
