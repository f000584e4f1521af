"""What users can set, its defaults and limits. The JSON Schema that editors read is generated from here.

Settings come from the editor (`initializationOptions`, then `workspace/didChangeConfiguration`) and from a project's
`dg-lsp.toml`. A wrong key or value is named in a sentence and the rest still applies.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, TypeVar, cast, get_type_hints

from cattrs import Converter

S = TypeVar("S")


def about(
    text: str, *, minimum: float | None = None, maximum: float | None = None, by_project: bool = True
) -> dict[str, Any]:
    """A field's metadata. `by_project`: whether a `dg-lsp.toml`, or a workspace's settings in an editor, may set it."""
    limits = {"minimum": minimum, "maximum": maximum}
    return {
        "about": text,
        "by_project": by_project,
        **{key: value for key, value in limits.items() if value is not None},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineSettings:
    """Ghost text."""

    threshold: float = field(
        default=0.4,
        metadata=about(
            "Suggestions that the model is less sure of than this are not shown unasked.", minimum=0, maximum=1
        ),
    )
    deadline_ms: Literal["auto"] | float = field(
        default="auto",
        metadata=about(
            "Milliseconds until the best suggestion so far is shown, or nothing if it is not good enough. "
            '"auto": 300 on a GPU, 1000 on a CPU.',
            minimum=1,
            maximum=60_000,
            by_project=False,
        ),
    )
    max_delay_ms: float = field(
        default=150,
        metadata=about(
            "Longest wait, in milliseconds, for a burst of typing to end. 0: ask at every key.",
            minimum=0,
            maximum=5000,
            by_project=False,
        ),
    )
    candidates: int = field(
        default=3, metadata=about("Suggestions to cycle through when asked for.", minimum=1, maximum=16)
    )
    max_tokens: int = field(
        default=96, metadata=about("Longest suggestion, in tokens of the model.", minimum=1, maximum=1024)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """Text from other open documents."""

    enabled: bool = field(
        default=True, metadata=about("Whether the model sees text from other open or lately edited documents.")
    )
    max_tokens: int = field(
        default=1024, metadata=about("Most of it, in tokens (estimated).", minimum=0, maximum=65_536)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """The process that holds the model; all editors share it, so these count when it is started."""

    model: str = field(
        default="", metadata=about("A model's name or folder; empty: the bundled one.", by_project=False)
    )
    device: str = field(
        default="", metadata=about('A device such as "cuda" or "cpu"; empty: the best there is.', by_project=False)
    )
    unload_after_s: float | None = field(
        default=None,
        metadata=about(
            "Seconds without a request until the weights leave the memory; null: 600.", minimum=1, by_project=False
        ),
    )
    exit_after_s: float | None = field(
        default=None,
        metadata=about("Seconds without a client until the engine ends; null: 1800.", minimum=1, by_project=False),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a user can set."""

    enabled: bool = field(default=True, metadata=about("Whether anything is suggested."))
    languages: dict[str, bool] = field(
        default_factory=dict[str, bool], metadata=about("Switches languages on or off, by their LSP identifier.")
    )
    completion: Literal["auto", "on", "off"] = field(
        default="auto",
        metadata=about('Suggestions in the completion menu. "auto": only where the editor has no inline completion.'),
    )
    stats: bool = field(
        default=True,
        metadata=about(
            "Whether accepted and rejected suggestions are counted, on this machine only.", by_project=False
        ),
    )
    inline: InlineSettings = field(default_factory=InlineSettings, metadata=about("Ghost text."))
    context: ContextSettings = field(default_factory=ContextSettings, metadata=about("Text from other documents."))
    engine: EngineSettings = field(
        default_factory=EngineSettings, metadata=about("The process that holds the model.", by_project=False)
    )


def applied(settings: S, given: object, *, by_project: bool = False, path: str = "") -> tuple[S, list[str]]:
    """The settings changed by what is valid in `given`, and a sentence for each thing that is not."""
    if not isinstance(given, Mapping):
        return settings, [f"The setting{path and f' {path!r}'} must be a table, not {_shown(given)}; it is ignored."]
    changes, problems = dict[str, Any](), list[str]()
    for key, value in cast(Mapping[object, object], given).items():
        changed, more = _changed(settings, str(key), value, by_project=by_project, path=path)
        changes |= changed
        problems += more
    return dataclasses.replace(cast(Any, settings), **changes), problems


@cache
def types_of(kind: type[Any]) -> dict[str, Any]:
    """The types of a settings class by field name."""
    return get_type_hints(kind)


def _changed(
    settings: object, key: str, value: object, *, by_project: bool, path: str
) -> tuple[dict[str, Any], list[str]]:
    known = {held.name: held for held in fields(cast(Any, settings))}
    name = f"{path}.{key}" if path else key
    if key not in known:
        close = get_close_matches(key[:40], known, n=1)
        return {}, [f"Unknown setting {_shown(name)}{f'; did you mean {close[0]!r}?' if close else ' is ignored.'}"]
    if by_project and not known[key].metadata["by_project"]:
        return {}, [f"The setting {name!r} can't be set by a project; set it in the editor."]
    current = getattr(settings, key)
    if is_dataclass(current):
        changed, problems = applied(current, value, by_project=by_project, path=name)
        return {key: changed}, problems
    try:
        return {key: _checked(value, types_of(type(settings))[key], known[key].metadata)}, []
    except ValueError as error:
        return {}, [f"The setting {name!r} must be {error}, not {_shown(value)}; it is ignored."]


def _checked(value: object, kind: Any, metadata: Mapping[str, Any]) -> Any:
    """The value, or ValueError with what it should be."""
    try:
        structured = _converter.structure(value, kind)
    except Exception:  # noqa: BLE001 cattrs raises groups of whatever its hooks raised
        raise ValueError(expected(kind)) from None
    if isinstance(structured, (int, float)) and not isinstance(structured, bool):
        low, high = metadata.get("minimum", float("-inf")), metadata.get("maximum", float("inf"))
        if not low <= structured <= high:
            raise ValueError(f"in {low:g}..{high:g}" if high < float("inf") else f"at least {low:g}")
    return structured


def expected(kind: Any) -> str:
    """What a value of a settings type looks like, in words."""
    words: dict[Any, str] = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "a text",
        type(None): "null",
        dict[str, bool]: "a table of true or false",
    }
    if kind in words:
        return words[kind]
    return " or ".join(f'"{choice}"' if isinstance(choice, str) else expected(choice) for choice in kind.__args__)


def _shown(value: object) -> str:
    # Not `repr`: a project's file may nest more deeply than that can follow.
    shown = reprlib.repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _strict_converter() -> Converter:
    """Nothing is coerced: "no" is no truth value and true no number."""
    converter = Converter()

    def only(*accepted: type[Any]) -> Any:
        def structure(value: object, kind: Any) -> Any:
            if type(value) not in accepted:
                raise TypeError(f"{value!r} is no {kind}")
            return value

        return structure

    for kind, accepted in ((bool, (bool,)), (int, (int,)), (float, (float, int)), (str, (str,))):
        converter.register_structure_hook(kind, only(*accepted))
    converter.register_structure_hook(Literal["auto"] | float, lambda value, _: _auto_or_number(value))
    return converter


def _auto_or_number(value: object) -> Any:
    if value != "auto" and type(value) not in (float, int):
        raise TypeError(f"{value!r} is no number")
    return value


_converter = _strict_converter()
