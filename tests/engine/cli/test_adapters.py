"""`dg-lsp adapters`, and commands that fill gaps in folders that were learnt."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.cli import run
from engine.common.errors import BadInput
from engine.fill.loading import load
from engine.models.adapters.index import Adapters
from engine.models.adapters.metadata import OLD, adapter_path, all_adapters, claimed, work_dir
from engine.models.checkpoints.directory import METADATA_FILE
from tests.engine.adapters import put_adapter

TOY = Path(__file__).parents[2] / "models" / "toy-uniform"
ASKED = ["--model", str(TOY), "--device", "cpu", "--no-engine", "--json"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path / "runtime"))
    (tmp_path / "repo").mkdir()
    return tmp_path / "repo"


@pytest.fixture
def toy() -> Any:
    return load(str(TOY), "cpu").model


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(arguments) == 0
    return capsys.readouterr().out


def test_they_are_listed_with_what_they_are_for_and_gained(repo: Path, toy: Any, capsys: pytest.CaptureFixture[str]):
    assert "There are no adapters yet" in said(["adapters"], capsys)
    first = put_adapter(toy, repo, commit="0123456789abcdef")
    other = put_adapter(toy, repo.parent / "other", seed=1, fingerprint="0" * 16)
    broken = put_adapter(toy, repo.parent / "broken", seed=2)
    (broken / METADATA_FILE).write_text("{")
    text = said(["adapters"], capsys)
    names = {line for line in text.splitlines() if not line.startswith(" ")}
    assert names == {first.name, other.name, broken.name}
    assert f"{repo} at 0123456789ab\n" in text
    assert "exact 50.0% -> 50.0%, similar 75.0% -> 75.0%, passes a fill 3.5 -> 3.5 on 9 gaps" in text
    assert f"have changed; run `dg-lsp tune {repo.parent / 'other'}` again" in text
    assert "is damaged" in text


@pytest.mark.parametrize("created", [1e30, -1e30])
def test_a_time_that_no_clock_shows_is_damage(repo: Path, toy: Any, created: float, capsys: pytest.CaptureFixture[str]):
    put_adapter(toy, repo, created=created)
    assert "is damaged (Expected `float`" in said(["adapters"], capsys)


def test_one_that_was_being_replaced_is_listed_as_it_was(repo: Path, toy: Any, capsys: pytest.CaptureFixture[str]):
    directory = put_adapter(toy, repo)
    directory.rename(directory.with_name(f"{directory.name}{OLD}"))
    assert f"{directory.name}\n    {repo}\n    for " in said(["adapters"], capsys)


def test_what_can_not_be_listed_is_one_line(
    repo: Path, toy: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    put_adapter(toy, repo)

    def refuse(_: Path) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    for arguments in (["adapters"], ["adapters", "off", str(repo)]):
        assert run(arguments) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith("adapters can't be listed (Permission denied): check its permissions.")
    assert Adapters(toy).model_for(str(repo)) is toy


@pytest.mark.parametrize("by_folder", [True, False])
def test_one_is_switched_off_and_on_and_removed(
    repo: Path, toy: Any, by_folder: bool, capsys: pytest.CaptureFixture[str]
):
    directory = put_adapter(toy, repo)
    name = str(repo) if by_folder else directory.name
    file = repo / "a.toy"
    file.write_text("let a = 3\nlet b = ▮\nprint a\n")

    def adapter() -> str:
        return json.loads(said(["fill", str(file), *ASKED], capsys))["adapter"]

    assert adapter() == str(repo)
    said(["adapters", "off", name], capsys)
    assert "    off\n" in said(["adapters"], capsys)
    assert adapter() == ""
    said(["adapters", "use", name], capsys)
    assert adapter() == str(repo)
    # Paths and digests of what was learnt, and runs that were paused.
    work_dir(directory).mkdir(parents=True)
    (work_dir(directory) / "learnt.json").touch()
    said(["adapters", "rm", name], capsys)
    assert adapter() == ""
    assert all_adapters() == []
    assert not work_dir(directory).exists()


def test_a_run_that_made_none_yet_is_listed_and_dropped(repo: Path, capsys: pytest.CaptureFixture[str]):
    work = work_dir(adapter_path(repo, "0" * 16))
    (work / "run-1").mkdir(parents=True)
    told = said(["adapters"], capsys)
    assert work.name in told
    assert "unfinished" in told
    assert said(["adapters", "rm", work.name], capsys) == f"{work.name} is gone.\n"
    assert not work.exists()
    assert "There are no adapters yet" in said(["adapters"], capsys)


def test_a_run_that_is_under_way_is_not_dropped(repo: Path, capsys: pytest.CaptureFixture[str]):
    work = work_dir(adapter_path(repo, "0" * 16))
    (work / "run-1").mkdir(parents=True)
    with claimed(work):
        assert run(["adapters", "rm", work.name]) == 2
        assert "is being tuned" in capsys.readouterr().err
        with pytest.raises(BadInput), claimed(work):
            pass
    assert (work / "run-1").exists()
    assert said(["adapters", "rm", work.name], capsys) == f"{work.name} is gone.\n"


def test_a_name_that_is_a_loop_of_links_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "loop").symlink_to("loop")
    assert run(["adapters", "off", str(tmp_path / "loop")]) == 2
    assert "There is no adapter" in capsys.readouterr().err


def test_a_name_that_nothing_has_is_one_line(repo: Path, toy: Any, capsys: pytest.CaptureFixture[str]):
    put_adapter(toy, repo)
    put_adapter(toy, repo, fingerprint="0" * 16)
    for name, told in (("nothing", "There is no adapter nothing"), (str(repo), "Several adapters are for")):
        assert run(["adapters", "rm", name]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert told in line
    assert len(all_adapters()) == 2
