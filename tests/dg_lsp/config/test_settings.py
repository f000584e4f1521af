"""Settings: what is valid applies, what is not is named once, and the shipped schema says the same."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import msgspec
import pytest

from dg_lsp.config.settings import Settings, applied
from dg_lsp.config.settings_schema import settings_schema

VALID = [
    {},
    {"enabled": False},
    {"languages": {"markdown": False, "python": True}},
    {"completion": "on"},
    {"inline": {"threshold": 0, "deadline_ms": 250.5, "candidates": 5}},
    {"inline": {"deadline_ms": "auto", "max_delay_ms": 0}},
    {"context": {"enabled": False, "max_tokens": 0}},
    {"engine": {"model": "m", "device": "cpu", "unload_after_s": 60, "exit_after_s": None}},
]
INVALID = [
    ({"enable": True}, "Unknown setting 'enable'; did you mean 'enabled'?"),
    ({"zzz": 1}, "Unknown setting 'zzz' is ignored."),
    ({"inline": {"treshold": 1}}, "Unknown setting 'inline.treshold'; did you mean 'threshold'?"),
    ({"enabled": "no"}, "The setting 'enabled' must be true or false, not 'no'; it is ignored."),
    (
        {"languages": {"go": 1}},
        "The setting 'languages' must be a table of true or false, not {'go': 1}; it is ignored.",
    ),
    (
        {"completion": "sure"},
        """The setting 'completion' must be "auto" or "off" or "on", not 'sure'; it is ignored.""",
    ),
    (
        {"inline": {"threshold": True}},
        "The setting 'inline.threshold' must be \"auto\" or a number in 0..1, not True; it is ignored.",
    ),
    (
        {"inline": {"threshold": 1.5}},
        "The setting 'inline.threshold' must be \"auto\" or a number in 0..1, not 1.5; it is ignored.",
    ),
    (
        {"inline": {"threshold": float("nan")}},
        "The setting 'inline.threshold' must be \"auto\" or a number in 0..1, not nan; it is ignored.",
    ),
    (
        {"inline": {"candidates": 2.5}},
        "The setting 'inline.candidates' must be a whole number in 1..16, not 2.5; it is ignored.",
    ),
    (
        {"inline": {"deadline_ms": "soon"}},
        """The setting 'inline.deadline_ms' must be "auto" or a number in 1..60000, not 'soon'; it is ignored.""",
    ),
    ({"inline": 3}, "The setting 'inline' must be a table, not 3; it is ignored."),
    (
        {"engine": {"unload_after_s": 0}},
        "The setting 'engine.unload_after_s' must be a number of at least 1 or null, not 0; it is ignored.",
    ),
    ([], "The setting must be a table, not []; it is ignored."),
]


def test_a_setting_counts_by_the_name_that_it_had():
    settings, problems = applied(Settings(), {"context": {"elsewhere": False}})
    assert (settings.context.workspace, problems) == (False, [])


@pytest.mark.parametrize("given", VALID, ids=str)
def test_valid_settings_apply_and_the_schema_allows_them(given):
    settings, problems = applied(Settings(), given)
    assert problems == []
    plain = json.loads(json.dumps(msgspec.to_builtins(settings)))
    for key, value in given.items():
        assert plain[key] == (plain[key] | value if isinstance(value, dict) else value)
    jsonschema.validate(given, settings_schema())


@pytest.mark.parametrize(("given", "problem"), INVALID, ids=str)
def test_invalid_settings_are_named_and_the_schema_refuses_them(given, problem):
    settings, problems = applied(Settings(), given)
    assert problems == [problem]
    assert settings == Settings()
    if "nan" not in problem:  # No JSON.
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(given, settings_schema())


def test_the_rest_still_applies():
    settings, problems = applied(Settings(), {"enabled": False, "inline": {"candidates": 5, "threshold": "x"}, "y": 1})
    assert (settings.enabled, settings.inline.candidates) == (False, 5)
    assert settings.inline.threshold == Settings().inline.threshold
    assert len(problems) == 2


def test_a_later_source_changes_only_what_it_names():
    settings, _ = applied(Settings(), {"inline": {"candidates": 5}})
    settings, _ = applied(settings, {"inline": {"threshold": 0.1}})
    assert (settings.inline.candidates, settings.inline.threshold) == (5, 0.1)


def test_a_project_can_not_choose_what_runs_on_the_machine():
    given = {"engine": {"model": "/evil"}, "stats": False, "enabled": False, "inline": {"deadline_ms": 1}}
    settings, problems = applied(Settings(), given, by_project=True)
    assert settings == Settings(enabled=False)
    assert problems == [
        "The setting 'engine' can't be set by a project; set it in the editor.",
        "The setting 'stats' can't be set by a project; set it in the editor.",
        "The setting 'inline.deadline_ms' can't be set by a project; set it in the editor.",
    ]


def test_the_defaults_are_the_ones_the_schema_names():
    def defaults(table):
        return {
            name: defaults(held) if "properties" in held else held["default"]
            for name, held in table["properties"].items()
        }

    assert applied(Settings(), defaults(settings_schema())) == (Settings(), [])


def test_the_shipped_schema_is_the_generated_one():
    shipped = files("dg_lsp").joinpath("settings.schema.json").read_text(encoding="utf-8")
    assert shipped == json.dumps(settings_schema(), indent=2) + "\n", "run python -m dg_lsp.config.settings_schema"
