"""What the model never sees, against git itself where git has a say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dg_lsp.config.exclusion import Exclusions, file_of
from dg_lsp.config.rereading import LOOK_AGAIN_S


@pytest.fixture(autouse=True, scope="module")
def no_settings_of_git(tmp_path_factory):
    """Whoever runs the tests may have git exclude files everywhere."""
    with pytest.MonkeyPatch.context() as patch:
        empty = tmp_path_factory.mktemp("settings")
        patch.setenv("GIT_CONFIG_GLOBAL", str(empty / "gitconfig"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("XDG_CONFIG_HOME", str(empty))
        yield


def excludes(path: Path, folder: Path | None = None) -> bool:
    return Exclusions().excludes(path.as_uri(), folder)


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        ".envrc",
        "prod.env",
        "server.pem",
        "SERVER.PEM",
        "tls.key",
        "id_rsa",
        "id_ed25519",
        "id_ecdsa_sk.pub",
        "credentials",
        "credentials.json",
        "gcp-credentials-prod.json",
        ".npmrc",
        ".netrc",
        "secrets.yaml",
        "x.tfvars",
        ".ssh/config",
        ".aws/config",
        ".kube/config",
        ".bash_history",
        "id_rsa.bak",
        "id_rsa.old",
        "id_rsa_work",
        "id_rsa.pub",
        "id_dsa.txt",
        "id_ecdsa.txt",
        "id_ed25519.txt",
        "id_work",
        "id_work.bak",
        "key.pem.bak",
        "key.pem.2024",
        "secrets.env.bak",
        "prod.env.production",
        "tls.key.old",
        "tls.key~",
        "credentials.toml.orig",
        "secrets.yaml.1",
        ".netrc.save.bak",
    ],
)
def test_secrets_are_known_by_name(tmp_path, name):
    assert excludes(tmp_path / name)
    assert Exclusions().excludes(f"untitled:{name}")
    assert Exclusions().excludes(f"vscode-remote://host/home/me/{name}")


@pytest.mark.parametrize(
    "name",
    [
        "a.py",
        "a.py.bak",
        "id_map.py",
        "id_map.py.bak",
        "environment.py",
        "vite-env.d.ts",
        "env.py",
        "pem.py",
        "pem.test.ts",
        "key.ts",
        "credentials_test.py",
        "secrets.py",
        "keys.go",
        "monkey.ts",
    ],
)
def test_code_is_not_taken_for_a_secret(tmp_path, name):
    assert not excludes(tmp_path / name)


def test_an_ignore_file_can_not_let_a_secret_in(tmp_path):
    (tmp_path / ".dgignore").write_text("!.env\n")
    assert excludes(tmp_path / ".env", tmp_path)


@pytest.mark.parametrize("name", [".gitignore", ".dgignore"])
def test_ignore_files_count_in_the_workspace_folder(tmp_path, name):
    (tmp_path / name).write_text("*.gen.py\nbuild/\n")
    assert excludes(tmp_path / "sub" / "a.gen.py", tmp_path)
    assert excludes(tmp_path / "build" / "deep" / "a.py", tmp_path)
    assert not excludes(tmp_path / "a.py", tmp_path)


def test_dgignore_comes_after_gitignore(tmp_path):
    (tmp_path / ".gitignore").write_text("local_*.py\n")
    (tmp_path / ".dgignore").write_text("!local_settings.py\n")
    assert not excludes(tmp_path / "local_settings.py", tmp_path)
    assert excludes(tmp_path / "local_other.py", tmp_path)


def test_a_repository_s_ignore_files_count_above_the_workspace_folder(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log.py\n")
    assert excludes(tmp_path / "package" / "a.log.py", tmp_path / "package")


def test_a_dgignore_counts_in_a_repository_below_the_workspace_folder(tmp_path):
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / ".dgignore").write_text("private/\n")
    (tmp_path / ".gitignore").write_text("*.gen.py\n")
    assert excludes(tmp_path / "project" / "private" / "a.py", tmp_path)
    # git, too, leaves what is above a repository out of account.
    assert not excludes(tmp_path / "project" / "a.gen.py", tmp_path)


def test_a_dgignore_of_the_repository_counts_above_the_workspace_folder(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".dgignore").write_text("*.log.py\n")
    assert excludes(tmp_path / "package" / "a.log.py", tmp_path / "package")


@pytest.mark.parametrize("where", ["default", "core.excludesFile", "the repository's own"])
def test_what_git_excludes_everywhere_counts(tmp_path, monkeypatch, where):
    top = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", top], check=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("HOME", str(tmp_path))
    excluding = tmp_path / "config" / "git" / "ignore"
    if where != "default":
        excluding = tmp_path / "my excludes"
        scope = "--global" if where == "core.excludesFile" else "--local"
        subprocess.run(["git", "-C", top, "config", scope, "core.excludesFile", "~/my excludes"], check=True)
    excluding.parent.mkdir(parents=True, exist_ok=True)
    excluding.write_text("notes/\n*.scratch.py\n")
    (top / ".gitignore").write_text("!kept.scratch.py\n")
    assert excludes(top / "deep" / "a.scratch.py")
    assert excludes(top / "notes" / "a.py")
    assert not excludes(top / "kept.scratch.py")
    assert not excludes(top / "a.py")


def test_without_git_its_excludes_lie_where_they_do_by_default(tmp_path, monkeypatch):
    (tmp_path / "w" / ".git").mkdir(parents=True)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config" / "git").mkdir(parents=True)
    (tmp_path / ".config" / "git" / "ignore").write_text("*.scratch.py\n")
    assert excludes(tmp_path / "w" / "a.scratch.py")


def test_a_changed_ignore_file_is_read_again(tmp_path):
    now_s = 0.0
    exclusions = Exclusions(lambda: now_s)
    uri = (tmp_path / "a.py").as_uri()
    assert not exclusions.excludes(uri, tmp_path)
    (tmp_path / ".dgignore").write_text("a.py\n")
    now_s += LOOK_AGAIN_S
    assert exclusions.excludes(uri, tmp_path)
    (tmp_path / ".dgignore").unlink()
    now_s += LOOK_AGAIN_S
    assert not exclusions.excludes(uri, tmp_path)


def test_a_broken_line_does_not_undo_the_others(tmp_path):
    (tmp_path / ".gitignore").write_bytes(b"\xff\xfe\n!\n/**/**[\na.py\n")
    assert excludes(tmp_path / "a.py", tmp_path)


def test_a_notebook_s_cell_is_its_file_and_other_schemes_have_none(tmp_path):
    assert file_of(f"vscode-notebook-cell:{tmp_path.as_posix()}/n%20b.ipynb#W0s") == tmp_path / "n b.ipynb"
    assert file_of("untitled:Untitled-1") is None
    assert file_of("file:///a%00b") is None
    assert file_of("nonsense") is None


names = st.sampled_from(["a", "b", "a.py", "b.py", "build"])
patterns = st.sampled_from(
    ["a", "*.py", "!a.py", "/a", "b/", "!b/", "a/b", "**/a", "build/**", "!build/a.py", "a/*", "# c", ""]
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(["", "a", "a/b", "build"]), st.lists(patterns, max_size=4), max_size=3),
    st.lists(st.lists(names, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8),
)
def test_git_agrees(tmp_path_factory, ignore_files, paths):
    top = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", top], check=True)
    for folder, lines in ignore_files.items():
        (top / folder).mkdir(parents=True, exist_ok=True)
        (top / folder / ".gitignore").write_text("\n".join(lines))
    asked = subprocess.run(
        ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "--stdin"],
        cwd=top,
        input="\n".join(paths),
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.stderr == ""
    ignored = set(asked.stdout.split())
    files = [path for path in paths if not (top / path).is_dir()]
    assert {path for path in files if excludes(top / path)} == {path for path in files if path in ignored}
