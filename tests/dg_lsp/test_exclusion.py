"""What the model never sees, against git itself where git has a say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dg_lsp.exclusion import Exclusions, file_of
from dg_lsp.rereading import LOOK_AGAIN_S


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
    ],
)
def test_secrets_are_known_by_name(tmp_path, name):
    assert excludes(tmp_path / name)
    assert Exclusions().excludes(f"untitled:{name}")
    assert Exclusions().excludes(f"vscode-remote://host/home/me/{name}")


@pytest.mark.parametrize(
    "name", ["a.py", "id_map.py", "environment.py", "credentials_test.py", "secrets.py", "keys.go", "monkey.ts"]
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
