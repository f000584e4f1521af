"""What the model never sees, against git itself where git has a say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dg_lsp.config import exclusion, git
from dg_lsp.config import patterns as patterns_of_git
from dg_lsp.config.exclusion import MAX_DEPTH, Exclusions, file_of
from dg_lsp.config.walking import files_below


@pytest.fixture(autouse=True, scope="module")
def no_settings_of_git(tmp_path_factory):
    """Whoever runs the tests may have git exclude files everywhere."""
    with pytest.MonkeyPatch.context() as patch:
        empty = tmp_path_factory.mktemp("settings")
        patch.setenv("GIT_CONFIG_GLOBAL", str(empty / "gitconfig"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("XDG_CONFIG_HOME", str(empty))
        yield


def why(uri: str, folder: Path | None = None, exclusions: Exclusions | None = None) -> str:
    exclusions = exclusions or Exclusions()
    exclusions.look(uri, [folder] if folder else [])
    return exclusions.why_excluded(uri)


def excludes(path: Path, folder: Path | None = None) -> bool:
    return why(path.as_uri(), folder) != ""


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
        "auth.json",
        "deploy_key",
        "deploy_key.pub",
        "prod-deploy-key",
        "vault.yml",
        "vault_password.txt",
        "github_rsa",
        "client_secret_1.json",
        ".netrc.save.bak",
        "credentials/id_rsa",
        "id_work/id_work",
        ".env.d/production",
        "app.secrets/production",
        ".credentials.d/work",
    ],
)
def test_secrets_are_known_by_name(tmp_path, name):
    assert excludes(tmp_path / name)
    assert why(f"untitled:{name}")
    assert why(f"vscode-remote://host/home/me/{name}")


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
        "auth.py",
        "auth.json.ts",
        "deploy_key.go",
        "vault_password.py",
        "token.rs",
        "order_history/views.py",
        "google/auth/credentials/impl.go",
        "id_tools/x.py",
        "crypto_ed25519/lib.rs",
        "nacl_rsa/mod.rs",
        "vault_pass/x.py",
        "deploy_keys/x.py",
        "token/x.py",
        "kubeconfig/x.go",
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


def test_while_git_does_not_answer_nothing_is_shown(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    exclusions, uri = Exclusions(), (tmp_path / "a.py").as_uri()
    monkeypatch.setattr(git, "_GIT_S", 0.0)
    assert why(uri, tmp_path, exclusions) == f"git does not answer in {tmp_path}, so nobody knows what it ignores"
    monkeypatch.undo()
    # It is not waited for at each look.
    assert why(uri, tmp_path, exclusions)
    monkeypatch.setattr(exclusion, "ASK_AGAIN_S", 0.0)
    assert why(uri, tmp_path, exclusions) == ""


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


@pytest.mark.parametrize("kind", ["plain", "worktree", "elsewhere"])
def test_what_a_repository_excludes_by_itself_counts_wherever_it_is_checked_out(tmp_path, kind):
    top, apart = tmp_path / "repository", tmp_path / "apart"

    def git(*arguments: str | Path) -> None:
        named = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
        subprocess.run(["git", "-C", tmp_path, *named, *arguments], check=True, capture_output=True)

    git("init", *(["--separate-git-dir", apart] if kind == "elsewhere" else []), top)
    excluding = (apart if kind == "elsewhere" else top / ".git") / "info" / "exclude"
    excluding.parent.mkdir(exist_ok=True)
    excluding.write_text("/private.py\n")
    if kind == "worktree":
        git("-C", top, "commit", "--allow-empty", "-m", "First")
        git("-C", top, "worktree", "add", tmp_path / "tree")
        top = tmp_path / "tree"
    assert excludes(top / "private.py", top)
    assert not excludes(top / "a.py", top)


def test_without_git_its_excludes_lie_where_they_do_by_default(tmp_path, monkeypatch):
    (tmp_path / "w" / ".git").mkdir(parents=True)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config" / "git").mkdir(parents=True)
    (tmp_path / ".config" / "git" / "ignore").write_text("*.scratch.py\n")
    assert excludes(tmp_path / "w" / "a.scratch.py")


def test_a_changed_ignore_file_is_read_again(tmp_path):
    exclusions = Exclusions()
    uri = (tmp_path / "a.py").as_uri()
    assert not why(uri, tmp_path, exclusions)
    (tmp_path / ".dgignore").write_text("a.py\n")
    assert why(uri, tmp_path, exclusions)
    (tmp_path / ".dgignore").unlink()
    assert not why(uri, tmp_path, exclusions)


def test_a_broken_line_does_not_undo_the_others(tmp_path):
    (tmp_path / ".gitignore").write_bytes(b"\xff\xfe\n!\n/**/**[\na.py\n")
    assert excludes(tmp_path / "a.py", tmp_path)


@pytest.mark.parametrize("name", [".gitignore", ".dgignore"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_ignore_file_is_read_as_its_mark_says(tmp_path, name, encoding, line_end):
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    lines = [f"{mark}first.py", "*.gen.py", "!kept.gen.py", "straße.py", ""]
    (tmp_path / name).write_bytes(line_end.join(lines).encode(encoding))
    files = ("first.py", "a.gen.py", "kept.gen.py", "straße.py", "b.py")
    assert [excludes(tmp_path / file, tmp_path) for file in files] == [True, True, False, True, False]


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\r"])
@pytest.mark.parametrize("name", [".gitignore", ".dgignore"])
def test_only_a_line_feed_ends_a_line_of_an_ignore_file(tmp_path, name, sign):
    (tmp_path / name).write_bytes(f"*.py\n# all{sign}!a.py\n!b.py{sign}\n!c.py\n".encode())
    found = [excludes(tmp_path / file, tmp_path) for file in ("a.py", "b.py", "c.py")]
    # Before a line feed, git takes a carriage return for a part of the line's end.
    assert found == [True, sign != "\r", False]


def test_a_notebook_s_cell_is_its_file_and_other_schemes_have_none(tmp_path):
    assert file_of(f"vscode-notebook-cell:{tmp_path.as_posix()}/n%20b.ipynb#W0s") == tmp_path / "n b.ipynb"
    assert file_of("untitled:Untitled-1") is None
    assert file_of("file:///a%00b") is None
    assert file_of("nonsense") is None


def test_nothing_is_shown_before_it_was_looked_at(tmp_path):
    uri, exclusions = (tmp_path / "a.py").as_uri(), Exclusions()
    assert "not read" in exclusions.why_excluded(uri)
    exclusions.look(uri)
    assert exclusions.why_excluded(uri) == ""
    exclusions.forget(uri)
    assert exclusions.why_excluded(uri)


@pytest.mark.parametrize("uri", ["file://localhost{}", "file://LOCALHOST{}", "FILE://{}", "file://host{}"])
def test_however_a_file_is_named_it_is_that_file(tmp_path, uri):
    (tmp_path / ".dgignore").write_text("a.py\n")
    assert why(uri.format(tmp_path / "a.py"), tmp_path)
    assert not why(uri.format(tmp_path / "b.py"), tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
def test_a_name_that_is_no_text_is_a_name(tmp_path):
    work, elsewhere = tmp_path / os.fsdecode(b"ws\xe9"), tmp_path / "elsewhere.py"
    elsewhere.touch()
    for folder in (work, work / os.fsdecode(b"caf\xe9")):
        folder.mkdir()
        (folder / ".dgignore").write_text("hidden.py\n")
        (folder / "link.py").symlink_to(elsewhere)
        for name in ("hidden.py", "open.py"):
            (folder / name).touch()
        found = {name: excludes(folder / name, work) for name in ("hidden.py", "link.py", "open.py")}
        assert found == {"hidden.py": True, "link.py": True, "open.py": False}
    (work / ".dgignore").write_bytes(b"caf\xe9/\n")
    assert excludes(work / os.fsdecode(b"caf\xe9") / "open.py", work)


@pytest.mark.parametrize("name", ["a;b.py", "a%3Bb.py", "a&b=c.py"])
def test_a_sign_that_means_something_elsewhere_in_a_uri_is_a_part_of_the_name(tmp_path, name):
    (tmp_path / ".dgignore").write_text("a;b.py\na&b=c.py\n")
    assert why(f"file://{tmp_path}/{name}", tmp_path)
    assert not why(f"file://{tmp_path}/a", tmp_path)


def test_a_link_is_what_it_leads_to(tmp_path):
    work, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (work / "private", work / "src", outside):
        folder.mkdir(parents=True)
    (work / ".env").write_text("KEY=1\n")
    (work / "private" / "a.py").touch()
    (work / ".dgignore").write_text("private/\n")
    (outside / "b.py").touch()
    targets = {
        "notes.py": work / ".env",
        "copy.py": work / "private" / "a.py",
        "b.py": outside / "b.py",
        "out": outside,
        "loop.py": work / "loop.py",
    }
    for name, target in targets.items():
        (work / name).symlink_to(target)
    (work / "fine.py").symlink_to(work / "src" / "c.py")
    for name in ("notes.py", "copy.py", "b.py", "out/b.py", "out/new.py", "src/../.env", "src/../private/a.py"):
        assert excludes(work / name, work), name
    assert "out of the workspace" in why((work / "b.py").as_uri(), work)
    assert not excludes(work / "fine.py", work)
    # A workspace may be a link itself; without one, the target's own ignore files count.
    (tmp_path / "linked").symlink_to(work)
    assert not excludes(tmp_path / "linked" / "fine.py", tmp_path / "linked")
    assert excludes(work / "notes.py")
    (outside / ".gitignore").write_text("b.py\n")
    assert excludes(work / "b.py")


def test_a_link_from_one_workspace_folder_into_another_is_what_it_leads_to(tmp_path):
    here, there, hidden = folders = [tmp_path / name for name in ("here", "there", "there/hidden")]
    hidden.mkdir(parents=True)
    here.mkdir()
    (there / ".dgignore").write_text("secret.py\n")
    (hidden / ".dgignore").write_text("*.py\n")
    (tmp_path / "outside.py").touch()
    for name, target in {
        "a.py": there,
        "secret.py": there,
        "b.py": hidden,
        "outside.py": tmp_path,
        ".env": there,
    }.items():
        (here / name.replace(".env", "notes.py")).symlink_to(target / name)
    (here / "all").symlink_to(there)

    def excluded(name: str) -> str:
        exclusions, uri = Exclusions(), (here / name).as_uri()
        exclusions.look(uri, folders)
        return exclusions.why_excluded(uri)

    assert [excluded(name) for name in ("a.py", "all/a.py", "all/new.py")] == ["", "", ""]
    assert all(excluded(name) for name in ("secret.py", "all/secret.py", "b.py", "all/hidden/b.py", "notes.py"))
    assert "out of the workspace" in excluded("outside.py")


@pytest.mark.processor_s(20)
def test_patterns_take_no_time_however_they_are_written(tmp_path):
    (tmp_path / ".gitignore").write_text("*?" * 16 + "x\n" + "(" + "**/" * 50 + "a*" * 40 + "b\n*.gen.py\n")
    assert not excludes(tmp_path / ("a" * 35), tmp_path)
    assert excludes(tmp_path / ("a" * 35 + "x"), tmp_path)
    assert excludes(tmp_path / "a.gen.py", tmp_path)


@pytest.mark.processor_s(20)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("".join(f"dir{number}/*.o\n" for number in range(80_000)), "is larger than 262.1 kB"),
        ("a\n" * 5000, "has more than 4000 patterns"),
        ("*a" * 20_000, "has a pattern that is too long"),
    ],
)
def test_a_file_that_holds_too_much_is_named_and_hides_what_it_is_about(tmp_path, text, reason):
    (tmp_path / ".gitignore").write_text(text)
    assert why((tmp_path / "a.py").as_uri(), tmp_path) == f"{tmp_path / '.gitignore'} {reason}"


@pytest.mark.processor_s(20)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_nobody_waits_for_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / ".dgignore")
    assert why((tmp_path / "a.py").as_uri(), tmp_path) == f"{tmp_path / '.dgignore'} is no ordinary file"
    top = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", top], check=True)
    for device, hides in (("/dev/stdin", True), ("/dev/zero", True), ("/dev/null", False)):
        subprocess.run(["git", "-C", top, "config", "core.excludesFile", device], check=True)
        reading, writing = os.pipe()
        stdin = os.dup(0)
        os.dup2(reading, 0)
        try:
            assert excludes(top / "a.py") == hides
        finally:
            os.dup2(stdin, 0)
            for each in (stdin, reading, writing):
                os.close(each)


@pytest.mark.processor_s(10)
def test_a_chain_of_folders_takes_no_time_and_ends(tmp_path):
    deep = tmp_path
    for _ in range(300):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "a.py").touch()
    (deep / "b.py").touch()
    (tmp_path / ".dgignore").write_text("b.py\n")
    exclusions = Exclusions()
    assert exclusions.reason((deep / "a.py").as_uri(), [tmp_path]) == ""
    assert exclusions.reason((deep / "b.py").as_uri(), [tmp_path])
    assert [*files_below([tmp_path], exclusions, lambda name: name == "a.py")] == [deep / "a.py"]
    (deep.parent / ".gitignore").write_text("a.py\n!b.py\n")
    assert exclusions.reason((deep / "a.py").as_uri(), [tmp_path])
    assert exclusions.reason((deep / "b.py").as_uri(), [tmp_path]) == ""
    assert exclusions.reason((deep / ("d/" * MAX_DEPTH) / "c.py").as_uri(), [tmp_path])


def test_a_walk_sees_what_became_of_ignore_files_since_the_last(tmp_path):
    for name in ("one/two/a.py", "one/b.py", "three/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    exclusions = Exclusions()

    def found() -> list[str]:
        paths = files_below([tmp_path], exclusions, lambda name: True)
        return [path.relative_to(tmp_path).as_posix() for path in paths]

    assert found() == ["one/b.py", "one/two/a.py", "three/c.py"]
    (tmp_path / "one" / ".gitignore").write_text("two/\n")
    assert found() == ["one/b.py", "three/c.py"]
    (tmp_path / ".dgignore").write_text("one/\n")
    assert found() == ["three/c.py"]
    (tmp_path / ".dgignore").write_text("!one/\nthree/\n")
    (tmp_path / "one" / ".gitignore").unlink()
    assert found() == ["one/b.py", "one/two/a.py"]


def test_a_folder_in_another_one_is_walked_through_once(tmp_path):
    for name in ("a.py", "inner/b.py", "inner/deep/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for folders in ([tmp_path, tmp_path / "inner"], [tmp_path / "inner", tmp_path, tmp_path]):
        found = [path.name for path in files_below(folders, Exclusions(), lambda name: True)]
        assert sorted(found) == ["a.py", "b.py", "c.py"]


names = st.sampled_from(["a", "b", "a.py", "b.py", "build"])
patterns = st.sampled_from(
    ["a", "*.py", "!a.py", "/a", "b/", "!b/", "!a/", "b", "a/b", "**/a", "build/**", "!build/a.py", "a/*", "# c", ""]
)
odd_ends = st.sampled_from(["# c\u2028!a.py", "# c\x0c!a.py", "# c\x85!a", "!a.py\x0c", "!a\u2028", "!a.py\t", "!b \r"])
lines = patterns | odd_ends | st.sampled_from(["*/", "!*/", "/*/", "*/**/"])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(["", "a", "a/b", "build"]), st.lists(lines, max_size=4), max_size=3),
    st.lists(st.lists(names, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8),
    st.sampled_from(["utf-8", "utf-8-sig"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_git_agrees(tmp_path_factory, ignore_files, paths, encoding, line_end):
    top = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", top], check=True)
    for folder, lines in ignore_files.items():
        (top / folder).mkdir(parents=True, exist_ok=True)
        (top / folder / ".gitignore").write_bytes(line_end.join(lines).encode(encoding))
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


@pytest.mark.parametrize("pattern", ["*/", "**/", "/*/", "**/*/", "/**/", "*/**/", "a/**/", "*/*/"])
def test_git_agrees_about_folders_of_any_name(tmp_path, pattern):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text(f"{pattern}\n")
    paths = ["f", "a/f", "b/f", "a/c/f", "b/c/f", "a/c/d/f"]
    command = ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", *paths]
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [path for path in paths if excludes(tmp_path / path)] == asked.stdout.split()


def test_git_agrees_where_file_systems_ignore_case(tmp_path, monkeypatch):
    monkeypatch.setattr(patterns_of_git, "IGNORES_CASE", True)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("/Private/\n*.Gen.py\n!/Kept.gen.py\n")
    paths = ["private/a.py", "PRIVATE/a.py", "inner/private/a.py", "a.gen.PY", "kept.GEN.py", "a.py"]
    command = ["git", "-c", "core.ignoreCase=true", "-c", "core.excludesFile=", "check-ignore", "--no-index", *paths]
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [path for path in paths if excludes(tmp_path / path)] == asked.stdout.split()
    assert len(asked.stdout.split()) == 3


@pytest.mark.parametrize(
    "shown",
    [
        "git:{path}?%7B%22path%22%3A%22x%22%2C%22ref%22%3A%22~%22%7D",
        "GIT:{path}",
        "gitlens://7b2276223a317d{path}?%7B%22ref%22%3A%22a%22%7D",
        "gitlens-git:{path}",
        "fugitive://{tree}/.git//0/{file}",
        "fugitive://{tree}/.git//bec68b7ee04/{file}",
        "diffview://{tree}/.git/bec68b7ee04/{file}",
        "diffview://{tree}/.git/:0:/{file}",
        "gitsigns://{tree}/.git//:0:{file}",
        "gitsigns://{tree}/.git//HEAD~2:{file}",
        "vscode-notebook-cell:{path}#W0",
        "conflictResolution:{path}",
        "untitled:{path}",
        "file://{path}",
    ],
)
def test_a_document_is_judged_by_its_path_whatever_shows_it(tmp_path, shown):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".dgignore").write_text("/kept/\n*.hidden\n")
    tree = tmp_path.as_posix()
    for file, is_hidden in (("kept/a.py", True), ("b.hidden", True), ("src/kept/a.py", False), ("src/b.py", False)):
        uri = shown.format(path=f"{tree}/{file}", tree=tree, file=file)
        exclusions = Exclusions()
        assert "not read" in exclusions.why_excluded(uri)
        exclusions.look(uri, [tmp_path])
        assert bool(exclusions.why_excluded(uri)) is is_hidden


@pytest.mark.parametrize(
    "uri",
    [
        "untitled:Untitled-1",
        "output:tasks",
        "nonsense",
        "jdt://contents/rt.jar",
        "term://x",
        "vscode-remote://ssh-remote+h/w/a.py",
    ],
)
def test_what_is_nowhere_is_shown(uri):
    assert Exclusions().why_excluded(uri) == "" or why(uri) == ""
