"""All settings, with defaults and limits. The JSON Schema that editors read is generated from here.

Settings come from the editor (`initializationOptions`, then `workspace/didChangeConfiguration`) and from a project's
`dg-lsp.toml`. A wrong key or value is reported in a sentence; the others still apply.
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

GPU_DEADLINE_MS, CPU_DEADLINE_MS = 300.0, 1000.0
"""What `inline.deadline_ms` "auto" stands for."""
UNFITTED_THRESHOLD = 0.4
"""What `inline.threshold` "auto" stands for where none was fitted for the model."""


def by_user(text: str) -> Meta:
    """For settings that neither `dg-lsp.toml` nor an editor's workspace settings may set."""
    return Meta(description=f"{text} Not in dg-lsp.toml.", extra_json_schema={"userOnly": True})


class InlineSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Ghost text."""

    threshold: Annotated[
        Literal["auto"] | Annotated[float, Meta(ge=0, le=1)],
        Meta(
            description="Automatic suggestions below this confidence are not shown. "
            f'"auto": the value fitted for the model, else {UNFITTED_THRESHOLD:g}.'
        ),
    ] = "auto"
    deadline_ms: Annotated[
        Literal["auto"] | Annotated[float, Meta(ge=1, le=60_000)],
        by_user(
            "Milliseconds until the best suggestion so far is shown, or none if it is not good enough. "
            f'"auto": {GPU_DEADLINE_MS:g} on a GPU, {CPU_DEADLINE_MS:g} on a CPU.'
        ),
    ] = "auto"
    max_delay_ms: Annotated[
        Annotated[float, Meta(ge=0, le=5000)],
        by_user("Longest wait, in milliseconds, for a burst of typing to end. 0: send a request at every key."),
    ] = 150
    candidates: Annotated[
        int, Meta(ge=1, le=16, description="How many suggestions you can cycle through when you request them.")
    ] = 3
    max_tokens: Annotated[int, Meta(ge=1, le=1024, description="Longest suggestion, in the model's tokens.")] = 96

    def deadline_or(self, usual_ms: float) -> float:
        """The user's deadline in milliseconds, else `usual_ms`."""
        return usual_ms if self.deadline_ms == "auto" else self.deadline_ms


class ContextSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the model sees beside the document."""

    enabled: Annotated[bool, Meta(description="Show the model text from other open or recently edited documents.")] = (
        True
    )
    max_tokens: Annotated[
        int, Meta(ge=0, le=65_536, description="Longest text from other documents, in tokens (estimated).")
    ] = 1024
    workspace: Annotated[
        bool,
        Meta(
            description="Reuse code from similar places in your workspace, with its names adapted, and suggest missing "
            "imports and names, where the model finds them likely."
        ),
    ] = True


class EngineSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The engine, which all editors share: these settings apply when it starts."""

    model: Annotated[
        str,
        by_user("A model's name or folder, or vllm+https://HOST:PORT/MODEL on a server; auto: the best on this disk."),
    ] = "auto"
    tokenizer: Annotated[
        str,
        by_user(
            "For a model on a server: a folder or Hub id with its tokenizer; empty: the one that the server names."
        ),
    ] = ""
    ca_file: Annotated[
        str, by_user("For a server: a PEM file with the certificate authorities to trust; empty: the system's.")
    ] = ""
    key_file: Annotated[
        str,
        by_user("For a server: a file with its API key, readable only by you; empty: DG_LSP_SERVER_KEY, if set."),
    ] = ""
    allow_insecure: Annotated[
        bool, by_user("For a server: allow plain HTTP, unencrypted, in a network that you trust.")
    ] = False
    device: Annotated[str, by_user('A device such as "cuda" or "cpu"; empty: the best one.')] = ""
    unload_after_s: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        by_user("Seconds without a request after which the model is unloaded; null: 600."),
    ] = None
    exit_after_s: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        by_user("Seconds without a client after which the engine ends; null: 1800."),
    ] = None
    http: Annotated[
        str,
        by_user(
            "HOST:PORT, such as 127.0.0.1:8012, where the engine serves HTTP clients of llama.cpp or OpenAI; empty: "
            "nowhere. The engine does not end by itself while it serves."
        ),
    ] = ""
    http_token_file: Annotated[
        str,
        by_user(
            "A file with the API key that HTTP clients must send, readable only by you; empty: DG_LSP_HTTP_TOKEN, if "
            "set."
        ),
    ] = ""


class Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All settings."""

    enabled: Annotated[bool, Meta(description="Suggestions on or off.")] = True
    languages: Annotated[dict[str, bool], Meta(description="Suggestions on or off by language (LSP identifier).")] = {}
    completion: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description='Show suggestions in the completion menu. "auto": only if the editor has no inline completion.'
        ),
    ] = "auto"
    next_edit: Annotated[
        Literal["auto", "on_key", "off"],
        Meta(
            description="Propose the next edit: where else your latest edit belongs. "
            '"on_key": only when you press its key.'
        ),
    ] = "auto"
    rewrites: Annotated[
        dict[str, str],
        Meta(description='Rewrites of your own in the list of code actions: {"Log it": "Log the arguments."}.'),
    ] = {}
    stats: Annotated[bool, by_user("Count accepted and rejected suggestions, on this machine only.")] = True
    inline: Annotated[InlineSettings, Meta(description="Ghost text.")] = InlineSettings()
    context: Annotated[ContextSettings, Meta(description="What the model sees beside the document.")] = (
        ContextSettings()
    )
    engine: Annotated[EngineSettings, by_user("The engine: the process that holds the model.")] = EngineSettings()


_OLD_NAMES = {"context.elsewhere": "workspace"}
"""Names of settings in earlier releases, which still count."""


def applied(settings: S, given: object, *, by_project: bool = False, path: str = "") -> tuple[S, list[str]]:
    """The settings changed by the valid part of `given`, and a sentence about each invalid part."""
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
    key = _OLD_NAMES.get(name, key)
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
        # An editor sends all of a table, a project only the differences.
        return {key: current | converted if by_project and isinstance(current, dict) else converted}, []
    except msgspec.ValidationError:
        return {}, [f"The setting {name!r} must be {_expected(schema)}, not {_shown(value)}; it is ignored."]


@cache
def _fields(kind: type[Struct]) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The settings in a table, each with its type and that type's JSON Schema."""
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
    """The valid values in words."""
    if schema.get("additionalProperties", {}).get("type") == "string":
        return "a table of texts"
    if "anyOf" in schema:
        return " or ".join(map(_expected, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f'"{choice}"' for choice in schema["enum"])
    low, high = schema.get("minimum"), schema.get("maximum")
    limits = "" if low is None else f" in {low:g}..{high:g}" if high is not None else f" of at least {low:g}"
    return _WORDS[schema["type"]] + limits


def _shown(value: object) -> str:
    # Not `repr`: values in a project's file may be nested too deeply for it.
    try:
        shown = reprlib.repr(value)
    except (
        ValueError
    ):  # TOML may hold a hexadecimal number with thousands of digits, which Python does not convert to text.
        shown = "a number that is too long"
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
