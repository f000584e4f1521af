"""The rules between the packages, tested on the packages as they are."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.common import errors

ROOT = Path(__file__).parents[1]
ORDER = {
    "engine": (*("common", "syntax", "models", "fill", "server", "lab", "learn", "cli", "__init__", "__main__"),),
    "dg_lsp": (
        *("__init__", "config", "documents", "backend", "protocol", "workspace", "suggest", "edits", "handlers"),
        *("app", "replay", "commands", "cli", "__main__"),
    ),
}
"""A module imports from its own package and from those before it, never in a circle. Modules that are in none of them
stand here under their own names. What is learnt is measured by the lab, so `learn` comes after it."""
OF_THE_ENGINE = {"common"}
"""The package of the engine that dg_lsp may import; the command line names its commands as text."""
OF_EACH_FAMILY = {"config", "model", "network", "prompt", "tokenizer"}
"""Modules that each folder of a model family may have, and `models` itself for what they share."""
HEAVY = {"torch", "transformers", "accelerate"}
EDITOR_SIDE = {"dg_lsp", "pygls", "lsprotocol"}


def modules(package: str) -> list[str]:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names if not name.endswith(".__main__")]


class Arrow(NamedTuple):
    """One import of our own."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer} imports {self.imported} (line {self.line})"


def arrows(root: Path) -> list[Arrow]:
    """All imports among the packages below `root`: also in functions, also for types only."""
    files = {module_of(file, root): file for side in ORDER for file in (root / side).rglob("*.py")}
    found: list[Arrow] = []
    for importer, file in files.items():
        package = importer if file.name == "__init__.py" else importer.rpartition(".")[0]
        for named, line in names_imported(file.read_text(encoding="utf-8"), package):
            imported = named if named in files else named.rpartition(".")[0]
            if imported in files and imported != importer:
                found.append(Arrow(importer, imported, line))
    return found


def module_of(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


@cache  # several tests look at the same files
def names_imported(text: str, package: str) -> tuple[tuple[str, int], ...]:
    """Each name that is imported, behind the module it is from."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found += ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
    return tuple(found)


def place_of(module: str) -> tuple[str, str]:
    """The side that a module is on, and its package there."""
    side, _, rest = module.partition(".")
    return side, rest.partition(".")[0] or "__init__"


def upward(root: Path) -> list[str]:
    """Imports that run from one package to a later one, or from one side to what it may not know of the other."""
    found: list[str] = []
    for arrow in arrows(root):
        (side, package), (other, target) = place_of(arrow.importer), place_of(arrow.imported)
        if side == other:
            order = ORDER[side]
            if package not in order or target not in order:
                found.append(f"{arrow}, and one of them is in no package")
            elif order.index(target) > order.index(package):
                found.append(f"{arrow}, but {target} comes after {package}")
        elif side == "engine" or target not in OF_THE_ENGINE:
            found.append(f"{arrow}, which it may not know")
    return found


def circle(root: Path) -> list[str]:
    """Imports that lead from a module back to itself, if there are any."""
    all_arrows = arrows(root)
    graph: dict[str, set[str]] = {}
    for arrow in all_arrows:
        graph.setdefault(arrow.importer, set()).add(arrow.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # In its order, each is imported by the next.
        steps = {(importer, imported) for imported, importer in pairwise(error.args[1])}
        return [str(arrow) for arrow in all_arrows if arrow[:2] in steps]
    return []


def test_imports_run_from_package_to_earlier_package():
    assert upward(ROOT) == []


def test_no_imports_lead_in_a_circle():
    assert circle(ROOT) == []


@pytest.mark.parametrize(("side", "package"), [(side, each) for side in ORDER for each in ORDER[side]])
def test_no_two_modules_of_a_package_share_a_name(side: str, package: str):
    names = Counter(file.stem for file in (ROOT / side / package).rglob("*.py") if not file.stem.startswith("__"))
    permitted = OF_EACH_FAMILY if package == "models" else set[str]()
    assert {name for name, count in names.items() if count > 1} <= permitted


@pytest.mark.parametrize(
    ("file", "pattern"),
    [("docs/how-it-works.md", r"^\| `{}/(.*?) \|"), ("CONTRIBUTING.md", r"^- `{}/`: ((?:.|\n  )*)")],
)
def test_the_packages_are_described_in_their_order(file: str, pattern: str):
    text = (ROOT / file).read_text(encoding="utf-8")
    for side, packages in ORDER.items():
        wanted = [package for package in packages if not package.startswith("__")]
        told = " ".join(re.findall(pattern.format(side), text, re.MULTILINE))
        assert [word for word in re.findall(r"\w+", told) if word in packages] == wanted


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The packages' code, to plant something in."""
    for side in ORDER:
        shutil.copytree(ROOT / side, tmp_path / side, ignore=shutil.ignore_patterns("weights", "__pycache__"))
    return tmp_path


@pytest.mark.parametrize(
    ("file", "planted", "told"),
    [
        (
            "engine/models/base.py",
            "from engine.fill.canvas import Canvas",
            r"models\.base imports engine\.fill\.canvas .*, but fill comes after models",
        ),
        (
            "engine/common/sizes.py",
            "def late():\n    from engine.syntax import tree",
            r"common\.sizes imports engine\.syntax\.tree .*, but syntax comes after common",
        ),
        (
            "engine/models/checkpoints/released.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import engine.server.worker",
            r"checkpoints\.released imports engine\.server\.worker .*, but server comes after models",
        ),
        (
            "engine/server/worker.py",
            "from ..lab.eval import rows",
            r"server\.worker imports engine\.lab\.eval\.rows .*, but lab comes after server",
        ),
        (
            "engine/fill/answering.py",
            "from engine import load",
            r"fill\.answering imports engine .*, but __init__ comes after fill",
        ),
        (
            "dg_lsp/handlers/completion.py",
            "from dg_lsp.app.routes import register",
            r"handlers\.completion imports dg_lsp\.app\.routes .*, but app comes after handlers",
        ),
        (
            "dg_lsp/backend/client.py",
            "from engine.models.base import Model",
            r"backend\.client imports engine\.models\.base .*, which it may not know",
        ),
        (
            "engine/common/marked.py",
            "import dg_lsp.documents.positions",
            r"common\.marked imports dg_lsp\.documents\.positions .*, which it may not know",
        ),
        ("engine/loose.py", "import engine.common.errors", r"loose imports .*, and one of them is in no package"),
    ],
)
def test_an_arrow_upward_is_found(copied: Path, file: str, planted: str, told: str):
    with (copied / file).open("a", encoding="utf-8") as end:
        end.write(f"\n{planted}\n")
    (found,) = upward(copied)
    assert re.search(told, found)


def test_a_circle_in_a_package_is_found(copied: Path):
    for file, other in (("extent", "heads"), ("heads", "holes"), ("holes", "extent")):
        with (copied / f"engine/syntax/{file}.py").open("a", encoding="utf-8") as end:
            end.write(f"\ndef late():\n    import engine.syntax.{other}\n")
    assert upward(copied) == []
    found = circle(copied)
    assert len(found) == 3
    assert any("syntax.extent imports engine.syntax.heads" in each for each in found)


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
        ["tune", "--help"],
    ],
)
def test_looking_at_the_command_line_imports_no_model_library(arguments: list[str]):
    assert imported_by(f"from dg_lsp.cli import run\nassert run({arguments}) == 0") & HEAVY == set()


def test_the_engine_can_be_imported_without_torch():
    assert imported_by("from engine import load") & HEAVY == set()
    assert (
        imported_by(
            "import engine.common.protocol, engine.common.request, engine.common.errors\n"
            "import engine.models.checkpoints.catalog"
        )
        & HEAVY
        == set()
    )


@pytest.mark.parametrize(
    "statement",
    [
        "import engine.server.__main__, engine.server.launch, engine.server.options, engine.server.process",
        "import dg_lsp.__main__, dg_lsp.app.standard_io, dg_lsp.backend.launch, dg_lsp.app.session",
    ],
    ids=["an engine", "a language server"],
)
def test_what_an_editor_starts_does_without_the_command_line_for_people(statement: str):
    assert imported_by(statement) & {"click", "rich", "pydantic"} == set()


def test_initialize_is_answered_before_the_protocol_is_imported():
    imported = imported_by("import dg_lsp.__main__, dg_lsp.app.standard_io")
    assert imported & {"asyncio", "lsprotocol", "pygls", "msgspec", "psutil"} == set()


def test_a_name_of_a_class_or_of_a_type_stands_for_one_thing():
    names = Counter(name for side in ORDER for file in (ROOT / side).rglob("*.py") for name in type_names(file))
    assert [name for name, count in names.items() if count > 1] == []


def type_names(file: Path) -> set[str]:
    """Of the classes of a module and, but for training's, of its aliases of types."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    classes = {node.name for node in body if isinstance(node, ast.ClassDef)}
    if file.is_relative_to(ROOT / "engine" / "learn"):
        return classes
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    assigned = {target.id for target in targets if isinstance(target, ast.Name)}
    return classes | {name for name in assigned if re.match("[A-Z].*[a-z]", name)}


def test_the_tree_of_errors_is_drawn_whole():
    bases = {
        node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
        for side in ORDER
        for file in (ROOT / side).rglob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    # The root, and two that never leave what raises them: a budget's end, and what runs in the sandbox.
    assert {name for name, above in bases.items() if "Exception" in above} == {
        "EngineError",
        "OutOfTime",
        "SolutionFailed",
    }
    drawn = re.findall(r"^    [│ ]*(?:[├└]── )?(\w+)(?=  |$)", errors.__doc__ or "", re.MULTILINE)
    held = {name for name in bases if "EngineError" in ancestors(name, bases) and not name.startswith("_")}
    assert sorted(drawn) == sorted(held)


def ancestors(name: str, bases: dict[str, list[str]]) -> set[str]:
    return {name}.union(*(ancestors(base, bases) for base in bases.get(name, ())))


def importers(package: str, of: set[str]) -> list[str]:
    """Files of a package that import one of these, wherever in them."""
    texts = {str(file): file.read_text(encoding="utf-8") for file in (ROOT / package).rglob("*.py")}
    return [
        file for file, text in texts.items() if {name.partition(".")[0] for name, _ in names_imported(text, "")} & of
    ]


def test_the_engine_knows_nothing_of_editors():
    assert importers("engine", EDITOR_SIDE) == []


def test_the_editor_side_imports_no_model_library():
    assert importers("dg_lsp", HEAVY) == []


def modules_for_any_family() -> list[Path]:
    """All that serves, evaluates and measures, whatever the model; only training is a family's own."""
    own = [
        "models/",
        "lab/baselines/",
        "lab/bench/families.py",
        "lab/bench/random_models.py",
        "learn/",
        "weights/",
    ]
    files = [
        file
        for file in (ROOT / "engine").rglob("*.py")
        if not file.relative_to(ROOT).as_posix().startswith(tuple(f"engine/{each}" for each in own))
    ]
    return sorted([*files, *(ROOT / "dg_lsp").rglob("*.py")])


def test_only_the_models_know_their_families():
    named = re.compile(r"gemma|\"masked\"|== \"causal\"|models\.(masked|causal|dream|llada)", re.IGNORECASE)
    assert {file for file in modules_for_any_family() if named.search(file.read_text(encoding="utf-8"))} == set()


def test_what_a_model_can_is_described_in_one_place():
    """`Capabilities` says it, and nobody but the lab asks a class instead."""
    asks = [file for file in (ROOT / "engine").rglob("*.py") if "runtime_checkable" in file.read_text(encoding="utf-8")]
    packages = {file.relative_to(ROOT / "engine").parts[0] for file in asks if file.name != "base.py"}
    assert packages <= {"lab"}
    about_models = re.compile(r"isinstance\((?:self\.)?_?model, (?!Forgetful|Measured)")
    files = [*modules_for_any_family(), *(ROOT / "engine" / "models" / "adapters").glob("*.py")]
    assert [file for file in files if about_models.search(file.read_text(encoding="utf-8"))] == []


def test_looking_up_a_family_imports_no_model_library():
    assert (
        imported_by(
            "import engine.models.registry, engine.models.checkpoints.checkpoint, engine.models.checkpoints.released\n"
            "import engine.lab.bench.families"
        )
        & HEAVY
        == set()
    )
