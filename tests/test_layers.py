"""The rules between the packages, tested on the packages as they are."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OF_THE_ENGINE = {"core", "text", "ipc"}
"""The rooms of the engine that dg_lsp may import; the command line names its commands as text."""
HEAVY = {"torch", "transformers", "accelerate"}
EDITOR_SIDE = {"dg_lsp", "pygls", "lsprotocol"}


def modules(package: str) -> list[str]:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names if not name.endswith(".__main__")]


def imports(file: Path) -> set[str]:
    """Modules that a file names in import statements, wherever they stand, also those for types only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} if node.module != "engine" else {f"engine.{alias.name}" for alias in node.names}
    return found


def imported_by(statements: str) -> set[str]:
    """Top-level packages in a fresh process after `statements`."""
    script = f"{statements}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return {name.partition(".")[0] for name in json.loads(result.stdout.splitlines()[-1])}


def test_the_language_server_never_imports_a_model_library():
    statements = "\n".join(f"import {name}" for name in modules("dg_lsp"))
    assert imported_by(statements) & HEAVY == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["fill", "--help"],
        ["pull", "--help"],
        ["models", "--help"],
        ["eval", "--help"],
        ["bench", "--help"],
    ],
)
def test_looking_at_the_command_line_imports_no_model_library(arguments: list[str]):
    assert imported_by(f"from dg_lsp.cli import run\nassert run({arguments}) == 0") & HEAVY == set()


def test_the_engine_can_be_imported_without_torch():
    assert imported_by("from engine import load") & HEAVY == set()
    assert (
        imported_by("import engine.ipc.protocol, engine.core.request, engine.core.errors, engine.loader.catalog")
        & HEAVY
        == set()
    )


@pytest.mark.parametrize("file", sorted((ROOT / "engine").rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_the_engine_knows_nothing_of_editors(file: Path):
    assert {name for name in imports(file) if name.partition(".")[0] in EDITOR_SIDE} == set()


@pytest.mark.parametrize("file", sorted((ROOT / "dg_lsp").rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_the_editor_side_knows_only_the_wire(file: Path):
    foreign = {name for name in imports(file) if name.partition(".")[0] == "engine"}
    assert {name.split(".")[1] for name in foreign} <= OF_THE_ENGINE
    assert {name for name in imports(file) if name.partition(".")[0] in HEAVY} == set()


def modules_for_any_family() -> list[Path]:
    """All that serves, evaluates and measures, whatever the model; only training is a family's own."""
    own = [
        "models/",
        "loader/released.py",
        "baselines/",
        "bench/families.py",
        "bench/gemma/",
        "bench/masked/",
        "train/",
        "weights/",
    ]
    files = [
        file
        for file in (ROOT / "engine").rglob("*.py")
        if not file.relative_to(ROOT).as_posix().startswith(tuple(f"engine/{each}" for each in own))
    ]
    return sorted([*files, *(ROOT / "dg_lsp").rglob("*.py")])


@pytest.mark.parametrize("file", modules_for_any_family(), ids=lambda file: str(file.relative_to(ROOT)))
def test_only_the_models_know_their_families(file: Path):
    named = re.compile(r"gemma|\"masked\"|models\.(masked|dream|llada)", re.IGNORECASE)
    assert named.findall(file.read_text(encoding="utf-8")) == []


def test_looking_up_a_family_imports_no_model_library():
    assert (
        imported_by(
            "import engine.models.registry, engine.loader.checkpoint, engine.loader.released, engine.bench.families"
        )
        & HEAVY
        == set()
    )
