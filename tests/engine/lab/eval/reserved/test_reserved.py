import json
import re
import zipfile
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from engine.common.errors import BadInput
from engine.lab.eval.reserved import packages
from engine.lab.eval.reserved.packages import (
    Reserved,
    ReservedFile,
    ReservedHole,
    development_gaps,
    fetch,
    reserved_files,
    reserved_holes,
    reserved_names,
    reserved_sources,
    reserved_tasks,
)
from engine.learn.sources import permissive_licence
from tests.engine.lab.eval.reserved import draw
from tests.engine.lab.eval.reserved.draw import COUNT, LONGEST, draw_holes
from tests.engine.learn.packages import python_code
from tests.engine.learn.test_licences import metadata

NAMED = {"attrs", "cloudpickle", "h11", "jsonschema", "packaging", "pexpect", "referencing", "six", "toolz"}


def test_the_list_is_what_was_promised():
    listed = reserved_sources()
    assert len({each.name for each in listed}) == len(listed) == 63
    assert {each.name for each in listed} >= NAMED
    assert sum(each.earlier is not None for each in listed) >= 40
    for each in listed:
        assert each.name == re.sub(r"[-_.]+", "-", each.name).lower()
        assert each.modules
        assert permissive_licence(metadata(License=each.licence)) or permissive_licence(
            metadata(License_Expression=each.licence)
        )
        assert set(each.sha256) == {each.version} | ({each.earlier} if each.earlier else set())
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in each.sha256.values())
        assert each.earlier != each.version


def test_nothing_reserved_is_among_the_training_packages():
    engine = Path(packages.__file__).parents[3]
    python, npm = (
        (engine / "learn" / name).read_text(encoding="utf-8") for name in ("python-packages.txt", "npm-packages.json")
    )
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", python, re.MULTILINE))
    assert len(pinned) > 40
    assert not {re.sub(r"[-_.]+", "-", name).lower() for name in pinned} & reserved_names()
    # The card names all of it, as it was read.
    card = (engine / "weights/bundled/MODEL_CARD.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| (\S+) \| (\S+) \| .* \| (?:train|held-out) \|$", card, re.MULTILINE))
    assert {*pinned.items(), *json.loads(npm).items()} <= rows


def test_there_are_three_hundred_holes_of_each_split_in_packages_of_its_own():
    roles = {each.name: each.role for each in reserved_sources()}
    versions = {each.name: each.version for each in reserved_sources()}
    found = reserved_holes()
    assert Counter(hole.split for hole in found) == {"reported": COUNT, "development": COUNT}
    assert all(roles[hole.package] == hole.split and versions[hole.package] == hole.version for hole in found)
    assert len({(hole.package, hole.path, hole.start) for hole in found}) == 2 * COUNT
    assert all(0 <= hole.start < hole.end <= hole.start + LONGEST + 80 for hole in found)
    for split in ("reported", "development"):
        kinds = Counter(hole.kind for hole in found if hole.split == split)
        assert kinds["line"] + kinds["whole_line"] == COUNT / 2
        assert set(Counter(hole.package for hole in found if hole.split == split).values()) <= {9, 10}


@pytest.fixture
def lone(monkeypatch: pytest.MonkeyPatch) -> Reserved:
    """A list of one package, `lone`, whose wheel is the one that `wheel` makes."""
    only = Reserved(
        name="lone",
        version="2.0",
        earlier="1.0",
        licence="MIT",
        role="reported",
        modules=("lone",),
        sha256={"2.0": "0" * 64, "1.0": "1" * 64},
    )
    for module in (packages, draw):
        monkeypatch.setattr(module, "reserved_sources", lambda: (only,))
    return only


def install(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> list[str]:
    """A registry's client that has these files in each release; returns what it was asked for."""
    asked: list[str] = []

    def client(command: list[str], what: str, folder: Path) -> None:
        wanted = (folder / "wanted.txt").read_text()
        asked.append(wanted)
        for name, version in re.findall(r"(\S+)==(\S+) --hash=sha256:", wanted):
            with zipfile.ZipFile(folder / "wheels" / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
                for path, text in files.items():
                    wheel.writestr(path, text)

    monkeypatch.setattr(packages, "run_client", client)
    return asked


def test_each_release_is_fetched_once_by_its_hash(tmp_path: Path, lone: Reserved, monkeypatch: pytest.MonkeyPatch):
    asked = install(monkeypatch, {"lone/a.py": "x = 1\r\n", "lone/b.so": "?", "lone-2.0.dist-info/METADATA": ""})
    found = [(file.version, file.path, file.text) for file in reserved_files(tmp_path)]
    assert found == [("2.0", "lone/a.py", "x = 1\r\n"), ("1.0", "lone/a.py", "x = 1\r\n")]
    fetch(tmp_path)
    assert asked == [f"lone==2.0 --hash=sha256:{'0' * 64}\n", f"lone==1.0 --hash=sha256:{'1' * 64}\n"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lone-1.0", "lone-2.0"]


def test_a_download_is_announced_once_and_only_where_there_is_one(
    tmp_path: Path, lone: Reserved, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    install(monkeypatch, {"lone/a.py": "x = 1\n"})
    fetch(tmp_path)
    assert capsys.readouterr() == ("", "Downloading 1 package from the package index, once.\n")
    fetch(tmp_path)
    assert capsys.readouterr() == ("", "")


def test_a_wheel_that_leads_out_leaves_nothing(tmp_path: Path, lone: Reserved, monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch, {"lone/a.py": "x = 1\n", "../../evil.py": "x = 1\n"})
    with pytest.raises(BadInput, match="leads out of its folder"):
        fetch(tmp_path / "reserved")
    assert list(tmp_path.rglob("*.py")) == []


def test_a_hole_becomes_a_task_and_a_changed_text_is_an_error(
    tmp_path: Path, lone: Reserved, monkeypatch: pytest.MonkeyPatch
):
    text = "name = '😋'\nx = name + 'y'\n"
    install(monkeypatch, {"lone/a.py": text})
    hole = ReservedHole(
        split="reported",
        package="lone",
        version="2.0",
        path="lone/a.py",
        start=text.index("name +"),
        end=len(text) - 1,
        kind="line",
        sha=sha256(b"name + 'y'").hexdigest()[:16],
    )
    monkeypatch.setattr(packages, "reserved_holes", lambda: [hole, replace(hole, split="development")])
    (task,) = reserved_tasks("reported", tmp_path)
    assert (task.prefix + task.truth + task.suffix, task.truth) == (text, "name + 'y'")
    assert development_gaps(tmp_path / "nowhere") is None
    more = list(development_gaps(tmp_path) or ())
    assert [each.truth for each in more] == ["name + 'y'"]
    (tmp_path / "lone-2.0" / "lone" / "a.py").write_text("other = 1\n")
    with pytest.raises(BadInput, match=r"a\.py of lone 2\.0 is not as it was"):
        reserved_tasks("reported", tmp_path)
    (tmp_path / "lone-2.0" / "lone" / "a.py").unlink()
    with pytest.raises(BadInput, match="fetch it again"):
        reserved_tasks("reported", tmp_path)


def test_holes_are_drawn_by_seed_in_code_and_not_twice(lone: Reserved):
    text = '"""A text.\n\nNo code in here, only words.\n"""\n# Nor here.\n' + python_code("lone", 30)
    files = {"lone": [ReservedFile(package="lone", version="2.0", path=f"lone/{n}.py", text=text) for n in "ab"]}
    first, again, other = (draw_holes("reported", files, seed, count=24) for seed in (0, 0, 1))
    assert first == again != other
    assert len(first) == 24
    assert Counter(hole.path for hole in first) == {"lone/a.py": 12, "lone/b.py": 12}
    truths = [text[hole.start : hole.end] for hole in first]
    assert len(set(truths)) == 24
    assert all(hole.start >= text.index("import os") for hole in first)
    whole = [truth for truth, hole in zip(truths, first, strict=True) if hole.kind == "whole_line"]
    assert all(truth.endswith("\n") and truth.count("\n") == 1 for truth in whole)
    assert draw_holes("development", files, 0, count=24) == []
