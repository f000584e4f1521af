"""What users can set, its defaults and limits. The JSON Schema that editors read is generated from here.

Settings come from the editor (`initializationOptions`, then `workspace/didChangeConfiguration`) and from a project's
`dg-lsp.toml`. A wrong key or value is named in a sentence and the rest still applies.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta, Struct, structs

S = TypeVar("S", bound=Struct)


def by_user(text: str) -> Meta:
    """About what no `dg-lsp.toml` may set, and in an editor no workspace's settings."""
    return Meta(description=f"{text} Not in dg-lsp.toml.", extra_json_schema={"userOnly": True})


class InlineSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Ghost text."""

    threshold: Annotated[
        Literal["auto"] | Annotated[float, Meta(ge=0, le=1)],
        Meta(
            description="Suggestions that the model is less sure of than this are not shown unasked. "
            '"auto": as fitted for the model\'s weights, else 0.4.'
        ),
    ] = "auto"
    deadline_ms: Annotated[
        Literal["auto"] | Annotated[float, Meta(ge=1, le=60_000)],
        by_user(
            "Milliseconds until the best suggestion so far is shown, or nothing if it is not good enough. "
            '"auto": 300 on a GPU, 1000 on a CPU.'
        ),
    ] = "auto"
    max_delay_ms: Annotated[
        Annotated[float, Meta(ge=0, le=5000)],
        by_user("Longest wait, in milliseconds, for a burst of typing to end. 0: ask at every key."),
    ] = 150
    candidates: Annotated[int, Meta(ge=1, le=16, description="Suggestions to cycle through when asked for.")] = 3
    max_tokens: Annotated[int, Meta(ge=1, le=1024, description="Longest suggestion, in tokens of the model.")] = 96

    def deadline_or(self, usual_ms: float) -> float:
        """The user's own deadline in milliseconds, where there is one."""
        return usual_ms if self.deadline_ms == "auto" else self.deadline_ms


class ContextSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Text from other open documents."""

    enabled: Annotated[
        bool, Meta(description="Whether the model sees text from other open or lately edited documents.")
    ] = True
    max_tokens: Annotated[int, Meta(ge=0, le=65_536, description="Most of it, in tokens (estimated).")] = 1024
    elsewhere: Annotated[
        bool,
        Meta(
            description="Whether text that stands between surroundings like the cursor's, in open documents or the "
            "workspace's files, and names that are missing are suggested too where the model finds them likely."
        ),
    ] = True


class EngineSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The process that holds the model; all editors share it, so these count when it is started."""

    model: Annotated[
        str, by_user("A model's name or folder, or vllm+https://HOST:PORT/MODEL of a server; empty: the bundled one.")
    ] = ""
    tokenizer: Annotated[
        str,
        by_user("For a server's model: a folder or Hub id with its tokenizer; empty: the one that the server names."),
    ] = ""
    ca_file: Annotated[
        str, by_user("For a server: a PEM file of the authorities to trust; empty: those of the system.")
    ] = ""
    key_file: Annotated[
        str,
        by_user("For a server: a file with its API key, which only you can read; empty: DG_LSP_SERVER_KEY, if set."),
    ] = ""
    allow_insecure: Annotated[
        bool, by_user("For a server: whether text may leave this machine by plain HTTP, in a network that you trust.")
    ] = False
    device: Annotated[str, by_user('A device such as "cuda" or "cpu"; empty: the best there is.')] = ""
    unload_after_s: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        by_user("Seconds without a request until the weights leave the memory; null: 600."),
    ] = None
    exit_after_s: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        by_user("Seconds without a client until the engine ends; null: 1800."),
    ] = None
    http: Annotated[
        str,
        by_user(
            "HOST:PORT, such as 127.0.0.1:8012, where the engine serves clients of llama.cpp's or OpenAI's HTTP; "
            "empty: nowhere. The engine does not end while it does."
        ),
    ] = ""
    http_token_file: Annotated[
        str,
        by_user(
            "A file with what those clients must send as their API key, which only you can read; empty: "
            "DG_LSP_HTTP_TOKEN, if set."
        ),
    ] = ""


class Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything a user can set."""

    enabled: Annotated[bool, Meta(description="Whether anything is suggested.")] = True
    languages: Annotated[
        dict[str, bool], Meta(description="Switches languages on or off, by their LSP identifier.")
    ] = {}
    completion: Annotated[
        Literal["auto", "on", "off"],
        Meta(description='Suggestions in the completion menu. "auto": only where the editor has no inline completion.'),
    ] = "auto"
    next_edit: Annotated[
        Literal["auto", "on_key", "off"],
        Meta(
            description="Whether clients that ask where else an edit belongs are told so. "
            '"on_key": only when somebody pressed a key for it.'
        ),
    ] = "auto"
    stats: Annotated[bool, by_user("Whether accepted and rejected suggestions are counted, on this machine only.")] = (
        True
    )
    inline: Annotated[InlineSettings, Meta(description="Ghost text.")] = InlineSettings()
    context: Annotated[ContextSettings, Meta(description="Text from other documents.")] = ContextSettings()
    engine: Annotated[EngineSettings, by_user("The process that holds the model.")] = EngineSettings()


def applied(settings: S, given: object, *, by_project: bool = False, path: str = "") -> tuple[S, list[str]]:
    """The settings changed by what is valid in `given`, and a sentence for each thing that is not."""
    if not isinstance(given, Mapping):
        return settings, [f"The setting{path and f' {path!r}'} must be a table, not {_shown(given)}; it is ignored."]
    changes, problems = dict[str, Any](), list[str]()
    for key, value in cast(Mapping[object, object], given).items():
        changed, more = _changed(settings, str(key), value, by_project=by_project, path=path)
        changes |= changed
        problems += more
    return structs.replace(settings, **changes), problems


def _changed(
    settings: Struct, key: str, value: object, *, by_project: bool, path: str
) -> tuple[dict[str, Any], list[str]]:
    known = _fields(type(settings))
    name = f"{path}.{key}" if path else key
    if key not in known:
        close = get_close_matches(key[:40], known, n=1)
        return {}, [f"Unknown setting {_shown(name)}{f'; did you mean {close[0]!r}?' if close else ' is ignored.'}"]
    kind, schema = known[key]
    if by_project and "userOnly" in schema:
        return {}, [f"The setting {name!r} can't be set by a project; set it in the editor."]
    current = getattr(settings, key)
    if isinstance(current, Struct):
        changed, problems = applied(current, value, by_project=by_project, path=name)
        return {key: changed}, problems
    try:
        converted = msgspec.convert(value, kind)
        # An editor tells all that it has, a project what is otherwise there.
        return {key: current | converted if by_project and isinstance(current, dict) else converted}, []
    except msgspec.ValidationError:
        return {}, [f"The setting {name!r} must be {_expected(schema)}, not {_shown(value)}; it is ignored."]


@cache
def _fields(kind: type[Struct]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The settings of a table, each with its type and that type's JSON Schema."""
    return {held.name: (held.type, msgspec.json.schema(held.type)) for held in structs.fields(kind)}


_WORDS = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "null": "null",
    "object": "a table of true or false",
}


def _expected(schema: Mapping[str, Any]) -> str:
    """What a value that fits looks like, in words."""
    if "anyOf" in schema:
        return " or ".join(map(_expected, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f'"{choice}"' for choice in schema["enum"])
    low, high = schema.get("minimum"), schema.get("maximum")
    limits = "" if low is None else f" in {low:g}..{high:g}" if high is not None else f" of at least {low:g}"
    return _WORDS[schema["type"]] + limits


def _shown(value: object) -> str:
    # Not `repr`: a project's file may nest more deeply than that can follow.
    try:
        shown = reprlib.repr(value)
    except ValueError:  # Python makes no text of one with thousands of digits, which TOML may have in hexadecimal.
        shown = "a number that is too long"
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
