from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.train.corpus import build_corpus, read_documents, read_manifest
from engine.train.sources import Sources
from tests.engine.train.packages import install_npm, install_python, python_code, script_code

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
    assert manifest.left_out["duplicate"] == 1
    python = [entry for entry in manifest.packages if entry.ecosystem == "python"]
    assert packages["big"].characters <= 0.2 * sum(entry.characters for entry in python)
    scripts = sum(entry.characters for entry in manifest.packages if entry.ecosystem == "npm")
    assert 0 < scripts <= 0.2 * sum(entry.characters for entry in manifest.packages)
    assert read_manifest(tmp_path / "corpus") == manifest


def test_documents_are_split_by_package(sources: Sources, tmp_path: Path):
    manifest = build_corpus(sources, tmp_path / "corpus", seed=3)
    train, held_out = (list(read_documents(tmp_path / "corpus", split)) for split in ("train", "held-out"))

    held_out_packages = {(entry.ecosystem, entry.name) for entry in manifest.packages if entry.split == "held-out"}
    assert len([name for ecosystem, name in held_out_packages if ecosystem == "python"]) >= 4
    assert any(ecosystem == "npm" for ecosystem, _ in held_out_packages)
    assert {d.package for d in held_out} == {name for _, name in held_out_packages}
    assert not {d.package for d in held_out} & {d.package for d in train}
    assert sum(len(d.text) for d in train) == manifest.characters("train")
    assert sum(len(d.text) for d in held_out) == manifest.characters("held-out")
    assert all(d.text.startswith("import os\n") for d in (*train, *held_out) if d.language == "python")


def test_the_seed_decides_everything(sources: Sources, tmp_path: Path):
    first, again, other = (build_corpus(sources, tmp_path / str(i), seed) for i, seed in enumerate((1, 1, 2)))
    assert first == again
    assert list(read_documents(tmp_path / "0", "train")) == list(read_documents(tmp_path / "1", "train"))
    assert {e.name for e in first.packages if e.split == "held-out"} != {
        e.name for e in other.packages if e.split == "held-out"
    }


def test_the_standard_library_is_taken_without_what_is_installed_beside_it(tmp_path: Path):
    library = tmp_path / "lib"
    for relative in ("json/decoder.py", "lib2to3/fixes.py", "site-packages/other.py", "test/test_json.py"):
        (library / relative).parent.mkdir(parents=True, exist_ok=True)
        (library / relative).write_text(python_code(relative.split("/")[0].replace("-", "_"), 40), encoding="utf-8")
    build_corpus(Sources(standard_library=library), tmp_path / "corpus", seed=0)
    assert {d.path for d in read_documents(tmp_path / "corpus", "train")} == {"json/decoder.py", "test/test_json.py"}


def test_folders_without_code_are_an_error(tmp_path: Path):
    with pytest.raises(BadInput, match="name other folders"):
        build_corpus(Sources(standard_library=None, site_packages=(tmp_path,)), tmp_path / "corpus", seed=0)
