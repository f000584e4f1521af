import re
from pathlib import Path

import pytest

from engine.common.errors import BadInput
from engine.learn.corpus import Split, build_corpus, read_documents, read_manifest
from engine.learn.screening import Forbidden
from engine.learn.sources import Sources, fetch_pinned
from tests.engine.learn.packages import install_npm, install_python, python_code, script_code

SPLITS: tuple[Split, ...] = ("train", "held-out")
NAMES = [f"pack{letter}" for letter in "abcdefghijkl"]


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    site_packages, node_modules = tmp_path / "site-packages", tmp_path / "node_modules"
    for name in NAMES:
        files = {f"{name}/core.py": python_code(name, 300), f"{name}/_vendor/copy.py": python_code("vendored")}
        install_python(site_packages, name, "MIT", files)
    install_python(site_packages, "copyleft", "GPL-3.0-only", {"copyleft/core.py": python_code("copyleft")})
    install_python(site_packages, "zcopycat", "MIT", {"zcopycat/core.py": python_code("packa", 300)})
    big = {f"big/part{i}.py": "\ufeff# Copyright Big\r\n\r\n" + python_code(f"big{i}", 99) for i in range(40)}
    install_python(site_packages, "big", "BSD-3-Clause", big)
    for name in ("alpha", "beta", "gamma"):
        install_npm(node_modules, name, "ISC", {"index.js": script_code(name, 200)})
    install_npm(node_modules / "alpha" / "node_modules", "inner", "MIT", {"index.ts": script_code("inner", 200)})
    install_npm(node_modules / "beta" / "node_modules", "alpha", "MIT", {"index.js": script_code("older", 200)})
    return Sources(standard_library=None, site_packages=(site_packages,), node_modules=(node_modules,))


def test_a_corpus_holds_permissive_code_once_and_balanced(sources: Sources, tmp_path: Path):
    manifest = build_corpus(sources, tmp_path / "corpus", seed=3)
    packages = {entry.name: entry for entry in manifest.packages}

    assert set(packages) - {"alpha", "beta", "gamma", "inner"} == {*NAMES, "big"}
    assert packages["alpha"].licence == "ISC"
    assert manifest.left_out["vendored"] == len(NAMES)
    assert manifest.left_out["near duplicate"] == 1
    total = sum(entry.characters for entry in manifest.packages)
    assert packages["big"].characters <= 6 / 17 * total
    scripts = sum(entry.characters for entry in manifest.packages if entry.ecosystem == "npm")
    assert 0 < scripts <= 0.13 * total
    assert read_manifest(tmp_path / "corpus") == manifest


def test_documents_are_split_by_package(sources: Sources, tmp_path: Path):
    manifest = build_corpus(sources, tmp_path / "corpus", seed=3)
    train, held_out = (list(read_documents(tmp_path / "corpus", split)) for split in ("train", "held-out"))

    held_out_packages = {(entry.ecosystem, entry.name) for entry in manifest.packages if entry.split == "held-out"}
    assert len(held_out_packages) == 1
    assert {d.package for d in held_out} == {name for _, name in held_out_packages}
    assert not {d.package for d in held_out} & {d.package for d in train}
    assert sum(len(d.text) for d in train) == manifest.characters("train")
    assert sum(len(d.text) for d in held_out) == manifest.characters("held-out")
    assert all(d.text.startswith("import os\n") for d in (*train, *held_out) if d.language == "python")


def test_the_seed_decides_what_is_taken_and_the_names_what_is_held_out(sources: Sources, tmp_path: Path):
    first, again, other = (build_corpus(sources, tmp_path / str(i), seed) for i, seed in enumerate((1, 1, 2)))
    assert first == again
    assert list(read_documents(tmp_path / "0", "train")) == list(read_documents(tmp_path / "1", "train"))
    orders = [[d.path for split in SPLITS for d in read_documents(tmp_path / str(i), split)] for i in (0, 2)]
    assert orders[0] != orders[1]
    assert [e.name for e in first.packages if e.split == "held-out"] == [
        e.name for e in other.packages if e.split == "held-out"
    ]


def test_reserved_packages_stay_out_by_name_by_copy_and_by_content(tmp_path: Path):
    site_packages = tmp_path / "site-packages"
    install_python(site_packages, "attrs", "MIT", {"attr/_make.py": python_code("make")})
    copies = {
        "tool/_internal/toolz/core.py": python_code("toolz"),
        "tool/compat/six.py": python_code("compat"),
        "tool/renamed.py": python_code("taken", 30) + python_code("own", 60),
        "tool/main.py": python_code("main"),
    }
    install_python(site_packages, "tool", "MIT", copies)
    forbidden = Forbidden(reserved=[python_code("taken")])
    manifest = build_corpus(
        Sources(standard_library=None, site_packages=(site_packages,)), tmp_path / "corpus", 0, forbidden
    )
    assert [d.path for d in read_documents(tmp_path / "corpus", "train")] == ["tool/main.py"]
    assert manifest.left_out["reserved package"] == 1
    assert manifest.left_out["reserved copy"] == 2
    assert manifest.left_out["reserved content"] == 1


def test_tests_are_a_tenth_at_most_and_utilities_weigh_more(tmp_path: Path):
    site_packages = tmp_path / "site-packages"
    tests = {f"boltons/tests/test_{i}.py": python_code(f"test{i}", 4) for i in range(20)}
    install_python(site_packages, "boltons", "BSD-3-Clause", {"boltons/iterutils.py": python_code("i", 80), **tests})
    install_python(site_packages, "plain", "MIT", {"plain/core.py": python_code("plain")})
    build_corpus(Sources(standard_library=None, site_packages=(site_packages,)), tmp_path / "corpus", seed=0)
    documents = [d for split in ("train", "held-out") for d in read_documents(tmp_path / "corpus", split)]
    assert {d.package: d.weight for d in documents} == {"boltons": 4, "plain": 1}
    sizes = {d.path: len(d.text) for d in documents if d.package == "boltons"}
    tested = sum(size for path, size in sizes.items() if "tests" in path)
    assert 0 < tested <= 0.1 * sum(sizes.values())


def test_the_standard_library_is_taken_without_what_is_installed_beside_it(tmp_path: Path):
    library = tmp_path / "lib"
    for relative in ("json/decoder.py", "lib2to3/fixes.py", "site-packages/other.py", "this/that.py"):
        (library / relative).parent.mkdir(parents=True, exist_ok=True)
        (library / relative).write_text(python_code(relative.split("/")[0].replace("-", "_"), 40), encoding="utf-8")
    build_corpus(Sources(standard_library=library), tmp_path / "corpus", seed=0)
    assert {d.path for d in read_documents(tmp_path / "corpus", "train")} == {"json/decoder.py", "this/that.py"}


def test_folders_without_code_are_an_error(tmp_path: Path):
    with pytest.raises(BadInput, match="name other folders"):
        build_corpus(Sources(standard_library=None, site_packages=(tmp_path,)), tmp_path / "corpus", seed=0)


def test_the_download_of_what_is_pinned_is_announced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("engine.learn.sources.run_client", lambda command, what, folder: None)
    monkeypatch.setattr("engine.learn.sources._fetch_npm", lambda packages, folder: None)
    fetch_pinned(tmp_path)
    fetch_pinned(tmp_path)
    told = capsys.readouterr()
    assert re.fullmatch(r"Downloading \d+ packages from the package indexes of Python and npm, once\.\n", told.err)
    assert told.out == ""
