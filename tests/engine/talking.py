"""A coder that was taught to answer: it says the same to everybody."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.engine.scripted import END, Scripted


@dataclass
class Talking(Scripted):
    """`heard`: what it was told, conversation by conversation; each pass takes `delay_s`."""

    delay_s: float = 0.0
    passes: int = 0
    heard: list[list[Mapping[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.info = replace(self.info, instructions=True)

    @property
    def chat(self) -> Talking:
        return self

    def ids(self, messages: Sequence[Mapping[str, str]], opening: str = "") -> list[int]:
        self.heard.append(list(messages))
        said = [token for each in messages for token in (*self.tokenize(each["content"]), END)]
        return [*said, *self.tokenize(opening)]

    def check(self, text: Any, tree: Any) -> Any:
        time.sleep(self.delay_s)
        self.passes += 1
        return super().check(text, tree)


def loads(model: Talking) -> Callable[[object], Talking]:
    """What a server loads its model with."""
    return lambda _on_percent=None: model
