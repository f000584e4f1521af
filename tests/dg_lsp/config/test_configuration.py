"""Which settings hold where."""

from __future__ import annotations

from pathlib import Path

import pytest

from dg_lsp.config.configuration import MAX_NAMED, Configuration
from dg_lsp.config.settings import Settings


class Looked(Configuration):
    """Looks at the disk whenever it is asked."""

    def settings_of(self, uri: str) -> Settings:
        self.look(uri)
        return super().settings_of(uri)


def configured(*folders: Path) -> tuple[Configuration, list[str]]:
    complaints = list[str]()
    configuration = Looked(complaints.append)
    configuration.change_folders([folder.as_uri() for folder in folders])
    return configuration, complaints


@pytest.mark.parametrize("wrap", [lambda given: given, lambda given: {"dg": given}, lambda given: {"dg-lsp": given}])
def test_later_settings_of_the_editor_keep_what_it_started_with(wrap):
    configuration, complaints = configured()
    configuration.initialize(wrap({"inline": {"candidates": 5}}))
    configuration.change(wrap({"inline": {"threshold": 0.1}}))
    assert (configuration.editor.inline.candidates, configuration.editor.inline.threshold) == (5, 0.1)
    configuration.change(wrap({}))
    assert (configuration.editor.inline.candidates, configuration.editor.inline.threshold) == (5, "auto")
    assert complaints == []


@pytest.mark.parametrize("nothing", [None, {}, [], {"dg": []}])
def test_no_settings_are_fine(nothing):
    configuration, complaints = configured()
    configuration.initialize(nothing)
    configuration.change(nothing)
    assert complaints == []


def test_a_project_s_file_counts_for_its_documents_only_and_is_read_again(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    project = tmp_path / "one" / "dg-lsp.toml"
    project.write_text("[inline]\ncandidates = 7\n")
    configuration, _ = configured(tmp_path / "one", tmp_path / "two")
    inside, outside = (tmp_path / "one" / "a.py").as_uri(), (tmp_path / "two" / "a.py").as_uri()
    assert configuration.settings_of(inside).inline.candidates == 7
    assert configuration.settings_of(outside).inline.candidates == 3
    assert configuration.settings_of("untitled:1").inline.candidates == 3
    project.write_text("[inline]\ncandidates = 10\n")
    assert configuration.settings_of(inside).inline.candidates == 10


def test_wrong_settings_are_named_once(tmp_path):
    configuration, complaints = configured(tmp_path)
    (tmp_path / "dg-lsp.toml").write_text("enabeld = true\nlanguages = {go = false}\n")
    uri = (tmp_path / "a.go").as_uri()
    for _ in range(3):
        assert configuration.settings_of(uri).languages == {"go": False}
        configuration.change({"completion": 3})
    assert complaints == [
        "Unknown setting 'enabeld'; did you mean 'enabled'?",
        """The setting 'completion' must be "auto" or "off" or "on", not 3; it is ignored.""",
    ]


def test_a_project_file_that_is_no_toml_is_named_and_ignored(tmp_path):
    configuration, complaints = configured(tmp_path)
    (tmp_path / "dg-lsp.toml").write_text("enabled = ")
    assert configuration.settings_of((tmp_path / "a.py").as_uri()).enabled
    assert len(complaints) == 1
    assert f"{tmp_path / 'dg-lsp.toml'} is not valid TOML" in complaints[0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_project_file_is_read_as_its_mark_says(tmp_path, encoding):
    configuration, complaints = configured(tmp_path)
    (tmp_path / "dg-lsp.toml").write_text("enabled = false\n", encoding=encoding)
    assert not configuration.settings_of((tmp_path / "a.py").as_uri()).enabled
    assert complaints == []


def test_the_innermost_folder_counts(tmp_path):
    configuration, _ = configured(tmp_path, tmp_path / "inner")
    assert configuration.folders_of((tmp_path / "inner" / "a.py").as_uri()) == (tmp_path / "inner",)
    configuration.change_folders([], [(tmp_path / "inner").as_uri()])
    assert configuration.folders_of((tmp_path / "inner" / "a.py").as_uri()) == (tmp_path,)
    assert configuration.folders_of("untitled:1") == ()


def test_switching_off_everywhere():
    configuration, _ = configured()
    assert configuration.why_off("untitled:1", "python") == ""
    configuration.switch(enabled=False)
    assert configuration.why_off("untitled:1", "python") == "Suggestions are switched off."
    assert not configuration.switched_on
    configuration.switch(enabled=True)
    assert configuration.why_off("untitled:1", "python") == ""


def test_a_project_says_nothing_of_languages_that_it_does_not_name(tmp_path):
    (tmp_path / "dg-lsp.toml").write_text("languages = {go = false, lua = true}\n")
    configuration, _ = configured(tmp_path)
    configuration.initialize({"languages": {"markdown": False, "lua": False}})
    uri = (tmp_path / "a").as_uri()
    off = [each for each in ("markdown", "lua", "go", "python") if configuration.why_off(uri, each)]
    assert off == ["markdown", "go"]
    configuration.change({"languages": {}})
    assert [each for each in ("markdown", "lua", "go", "python") if configuration.why_off(uri, each)] == ["go"]


def test_switching_a_language_overrides_the_setting():
    configuration, _ = configured()
    configuration.initialize({"languages": {"markdown": False}})
    assert configuration.why_off("untitled:1", "markdown") == "Suggestions are switched off for markdown."
    configuration.switch(enabled=True, language="markdown")
    assert configuration.why_off("untitled:1", "markdown") == ""
    configuration.switch(enabled=False, language="go")
    assert configuration.why_off("untitled:1", "go") != ""
    assert configuration.why_off("untitled:1", "python") == ""


def test_switching_a_folder_counts_below_it_until_a_nearer_one_says_otherwise(tmp_path):
    configuration, _ = configured(tmp_path)
    configuration.switch(enabled=False, folder=tmp_path.as_uri())
    configuration.switch(enabled=True, folder=(tmp_path / "inner").as_uri())
    assert (
        configuration.why_off((tmp_path / "a.py").as_uri(), "python") == f"Suggestions are switched off in {tmp_path}."
    )
    assert configuration.why_off((tmp_path / "inner" / "a.py").as_uri(), "python") == ""
    assert configuration.why_off("untitled:1", "python") == ""


def test_switching_on_overrides_the_setting_until_the_setting_changes(tmp_path):
    (tmp_path / "dg-lsp.toml").write_text("enabled = false\n")
    configuration, _ = configured(tmp_path)
    inside, outside = (tmp_path / "a.py").as_uri(), "untitled:1"
    configuration.initialize({"enabled": False})
    for uri in (inside, outside):
        assert configuration.why_off(uri, "python") == "Suggestions are switched off."
    configuration.switch(enabled=True)
    configuration.change({"enabled": False, "completion": "off"})
    assert configuration.switched_on
    assert configuration.why_off(inside, "python") == "Suggestions are switched off.", "the project says so"
    assert configuration.why_off(outside, "python") == ""
    configuration.change({"enabled": True})
    assert configuration.switched_on
    assert configuration.why_off(inside, "python") == "Suggestions are switched off."
    assert configuration.why_off(outside, "python") == ""
    configuration.change({"enabled": False})
    assert not configuration.switched_on


@pytest.mark.parametrize("by", ["setting", "switch"])
def test_what_is_off_is_off_in_projects_that_are_on_too(tmp_path, by):
    (tmp_path / "dg-lsp.toml").write_text("enabled = true\n")
    configuration, _ = configured(tmp_path)
    if by == "setting":
        configuration.initialize({"enabled": False})
    else:
        configuration.switch(enabled=False)
    assert configuration.why_off((tmp_path / "a.py").as_uri(), "python") == "Suggestions are switched off."
    configuration.switch(enabled=True)
    assert configuration.why_off((tmp_path / "a.py").as_uri(), "python") == ""


def test_a_language_s_switch_holds_until_its_setting_changes():
    configuration, _ = configured()
    for language in ("go", "python"):
        configuration.switch(enabled=False, language=language)
    configuration.change({"languages": {"python": True}})
    assert configuration.why_off("untitled:1", "go") == "Suggestions are switched off for go."
    assert configuration.why_off("untitled:1", "python") == ""


REMOTE = "vscode-remote://ssh-remote+host/home/me"


@pytest.mark.parametrize(
    ("folder", "inside", "outside"),
    [
        (REMOTE, f"{REMOTE}/app/a.py", f"{REMOTE}else/a.py"),
        (f"{REMOTE}/", f"{REMOTE}/a.py", "vscode-remote://ssh-remote+other/home/me/a.py"),
        (f"{REMOTE}/my%20app", f"{REMOTE}/my app/a.py", f"{REMOTE}/my/a.py"),
        ("vscode-remote://ssh-remote%2Bhost/home/me", f"{REMOTE}/a.py", "file:///home/me/a.py"),
        ("file:///home/me", "vscode-notebook-cell:/home/me/n.ipynb#W0s", f"{REMOTE}/a.py"),
    ],
)
def test_a_folder_of_any_scheme_can_be_switched_alone(folder, inside, outside):
    configuration, _ = configured()
    configuration.switch(enabled=False, folder=folder)
    assert configuration.why_off(inside, "python").startswith("Suggestions are switched off in ")
    assert configuration.why_off(outside, "python") == ""
    assert configuration.why_off("untitled:1", "python") == ""
    assert configuration.switched_on


@pytest.mark.parametrize("folder", ["", "/home/me", "app"])
def test_a_folder_that_is_no_uri_is_refused_and_switches_nothing(folder):
    configuration, _ = configured()
    with pytest.raises(ValueError, match="must be a URI such as"):
        configuration.switch(enabled=False, folder=folder)
    assert configuration.why_off("untitled:1", "python") == ""


def test_a_language_can_be_switched_in_one_folder(tmp_path):
    configuration, _ = configured(tmp_path)
    inside, outside = (tmp_path / "a.py").as_uri(), "untitled:1"
    configuration.switch(enabled=False, language="python", folder=tmp_path.as_uri())
    assert configuration.why_off(inside, "python") == f"Suggestions are switched off for python in {tmp_path}."
    assert [configuration.why_off(inside, "go"), configuration.why_off(outside, "python")] == ["", ""]
    configuration.switch(enabled=False, language="python")
    configuration.switch(enabled=True, language="python", folder=tmp_path.as_uri())
    assert configuration.why_off(inside, "python") == ""
    assert configuration.why_off(outside, "python") == "Suggestions are switched off for python."


@pytest.mark.processor_s(20)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a." * 100_000 + "a = 1", "is larger than 65.5 kB"),
        ("a." * 30_000 + "a = 1", "has a line with more than 200 dots"),
        ("[" + "a." * 30_000 + "a]", "has a line with more than 200 dots"),
        ("'\u2028a'." * 6_000 + "a = 1", "has a line with more than 200 dots"),
        ("a = " + "[" * 30_000, "is not valid TOML"),
        ("a = " + "{b=" * 20_000, "is not valid TOML"),
        ("a = " + "9" * 5_000, "is not valid TOML"),
        ("\0", "is not valid TOML"),
        ("".join(f"{'a.' * 150}a{number} = 1\n" for number in range(200)), "Unknown setting 'a'"),
        ("enabled = " + "[" * 150 + "]" * 150, "The setting 'enabled' must be true or false, not [["),
        (f"{'k' * 60_000} = 1", "Unknown setting 'kkkk"),
        (f"enabled = 0x{'F' * 4_000}", "must be true or false, not a number that is too long"),
        (f"enabled = [{{a = 0x{'F' * 4_000}}}]", "must be true or false, not a number that is too long"),
    ],
)
def test_a_project_file_of_any_content_is_named_once(tmp_path, text, problem):
    configuration, complaints = configured(tmp_path)
    (tmp_path / "dg-lsp.toml").write_text(text)
    for _ in range(3):
        assert configuration.settings_of((tmp_path / "a.py").as_uri()).enabled
    assert len(complaints) == 1
    assert problem in complaints[0]
    assert len(complaints[0]) < 300 + len(str(tmp_path))


def test_a_project_file_names_no_more_problems_than_somebody_would_read(tmp_path):
    configuration, complaints = configured(tmp_path)
    (tmp_path / "dg-lsp.toml").write_text("".join(f"key{number} = 1\n" for number in range(2000)))
    configuration.settings_of((tmp_path / "a.py").as_uri())
    assert len(complaints) == MAX_NAMED


@pytest.fixture
def linked(tmp_path):
    """A folder, and a link to it."""
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return tmp_path / "real", tmp_path / "link"


@pytest.mark.parametrize("folder_at", [0, 1], ids=["folder", "link"])
@pytest.mark.parametrize("document_at", [0, 1], ids=["document in the folder", "document in the link"])
def test_an_off_switch_is_heeded_by_whichever_name_a_folder_and_a_document_go(linked, folder_at, document_at):
    (linked[0] / "dg-lsp.toml").write_text("enabled = false\n")
    configuration, complaints = configured(linked[folder_at])
    uri = (linked[document_at] / "sub" / "new.py").as_uri()
    assert configuration.settings_of(uri).enabled is False
    assert configuration.why_off(uri, "python")
    for scheme in ("git", "fugitive", "diffview", "gitlens", "vscode-notebook-cell"):
        assert configuration.settings_of(f"{scheme}:{uri.partition(':')[2]}").enabled is False
    assert complaints == []


def test_of_two_projects_that_a_document_is_in_by_its_names_either_can_be_off(linked, tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "dep").symlink_to(linked[0])
    uri = (tmp_path / "w" / "dep" / "a.py").as_uri()
    configuration, _ = configured(tmp_path / "w", linked[0])
    assert configuration.settings_of(uri).enabled
    (linked[0] / "dg-lsp.toml").write_text("enabled = false\n")
    assert not configuration.settings_of(uri).enabled
    (linked[0] / "dg-lsp.toml").write_text("enabled = true\n")
    (tmp_path / "w" / "dg-lsp.toml").write_text("enabled = false\n")
    assert not configuration.settings_of(uri).enabled


@pytest.mark.parametrize("folder_at", [0, 1])
def test_a_folder_is_switched_by_whichever_name(linked, folder_at):
    configuration, _ = configured(linked[folder_at])
    for at in (0, 1):
        configuration.switch(enabled=False, folder=linked[at].as_uri())
        for place in linked:
            uri = (place / "a.py").as_uri()
            configuration.look(uri)
            assert configuration.why_off(uri, "python")
        configuration.switch(enabled=True, folder=linked[at].as_uri())


def test_links_in_a_circle_are_no_trouble(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    configuration, _ = configured(tmp_path)
    assert configuration.settings_of((tmp_path / "a" / "x.py").as_uri()).enabled


@pytest.mark.parametrize(
    ("languages", "language", "on"),
    [
        ({"python": False}, "python", False),
        ({"python": False}, "python.django", False),
        ({"django": False}, "python.django", False),
        ({"python": False}, "Python", False),
        ({"Python": False}, "python", False),
        ({"*": False}, "python", False),
        ({"*": False, "python": True}, "python", True),
        ({"*": False, "Python": True}, "python.django", True),
        ({"*": False, "python": True}, "rust", False),
        ({"python": False, "python.django": True}, "python.django", True),
        ({"python": True, "django": False}, "python.django", False),
        ({"python": False}, "pythonic", True),
        ({"python.django": False}, "python", True),
        ({"*": False}, "", False),
    ],
)
def test_a_language_goes_by_its_parts_in_any_case(languages, language, on):
    configuration, complaints = configured()
    configuration.initialize({"languages": languages})
    assert (configuration.why_off("file:///a.py", language) == "") is on
    for name, enabled in languages.items():
        if len(languages) == 1 and name != "*":
            configuration.initialize({})
            configuration.switch(enabled=enabled, language=name)
            assert (configuration.why_off("file:///a.py", language) == "") is on
    assert complaints == []


def test_a_name_that_no_language_has_is_named_once(tmp_path):
    (tmp_path / "dg-lsp.toml").write_text("[languages]\npyhton = false\nklingon = true\n")
    configuration, complaints = configured(tmp_path)
    for _ in range(3):
        configuration.settings_of((tmp_path / "a.py").as_uri())
    assert complaints == [
        "The setting 'languages' names 'pyhton', which no editor is known to call a language: did you mean 'python'?",
        "The setting 'languages' names 'klingon', which no editor is known to call a language.",
    ]
