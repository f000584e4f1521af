import json
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

import engine.learn.__main__ as commands
from engine.lab.eval.tasks import EvalTask
from engine.learn import assessment
from engine.learn.training_recipe import Recipe, changed
from tests.engine.learn.packages import install_python, python_code

HOLE = EvalTask(name="a", kind="line", language="python", prefix="def one():\n    ", suffix="\n", truth="return 1")


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """`run` has a process of its own but here: what it changes of that is taken back. Where denormals are flushed, the
    least number above zero is zero, and bounds by it hold no more."""
    yield
    torch.set_flush_denormal(False)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(commands, "reserved_files", list)
    monkeypatch.setattr(commands, "Sources", partial(commands.Sources, standard_library=None))
    monkeypatch.setattr(assessment, "PLAIN_ROWS", 2)
    monkeypatch.setattr(commands, "reserved_tasks", lambda split: [HOLE] * (3 if split == "development" else 0))
    monkeypatch.setattr(commands, "corpus_folder", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(commands.app, arguments)


def test_from_packages_to_a_model_with_a_card(tmp_path: Path, cache: Path):
    for number in range(8):
        name = f"package{number}"
        install_python(tmp_path / "site", name, "MIT", {f"{name}/main.py": python_code(name, 150)})
    made = call("corpus", "--site-packages", str(tmp_path / "site"))
    assert made.exit_code == 0, made.output
    assert "8 packages" in made.output
    sizes = ("step_tokens=512", "canvases_from=1024", "decay=512", "shape.layers=2", "shape.hidden=64", "shape.heads=2")
    changes = [part for size in sizes for part in ("--set", size)]
    options = ("--tokens", "2048", *changes, "--threads", "1", "--no-compile")
    done = call("run", *options)
    assert done.exit_code == 0, done.output
    assert "Done: 2,048 tokens" in done.output
    assert "Done: 2,048 tokens" in call("run", *options).output
    assessed = call("assess", "--gaps", "3", "--holes", "2", *changes)
    assert assessed.exit_code == 0, assessed.output
    causal, filled = assessed.stdout.splitlines()
    assert causal.startswith("2,048 tokens: ")
    assert "3 gaps: exact" in causal
    assert filled.startswith("2 development holes, width given: canvas ")
    (tmp_path / "figures.md").write_text("| pass@1 |\n|--:|\n| 12% |\n")
    figures = ("--evaluation", str(tmp_path / "figures.md"))
    written = call("export", "--out", str(tmp_path / "model"), "--holes", "2", *changes, *figures)
    assert written.exit_code == 0, written.output
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert "| package0 | 1.0 | MIT | 1 |" in card
    assert "| Context tokens read | 2,048 |" in card
    assert f"## Evaluation\n\n{filled.strip()}.\n\n| pass@1 |\n" in card
    facts = json.loads((tmp_path / "model" / "dg_lsp.json").read_text())
    assert (facts["noise"], facts["threshold"]) == ("absorbing", 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--device", "tpu"), "There is no device 'tpu'"),
        (("run", "--set", "depth=3"), "A recipe has no 'depth': use one of noise, tokens,"),
        (("run", "--set", "shape=3"), "A recipe has no 'shape'"),
        (("run", "--set", "shape.layers=many"), "shape.layers can't be 'many': it is 6 in the recipe."),
        (("run", "--set", "runs_on=perhaps"), "runs_on can't be 'perhaps': it is False in the recipe."),
        (("run", "--set", "noise=white"), "noise can't be 'white': it is 'absorbing' in the recipe."),
        (("run", "--corpus", "none", "--no-compile"), "holds no packed corpus"),
        (("export", "--out", "model", "--name", "none"), "holds no run"),
        (("assess", "--name", "none"), "holds no run"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], message: str):
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_packages_of_the_interpreter_and_its_base_are_found():
    folders = commands.installed_packages()
    assert any((folder / "click").is_dir() for folder in folders)
    assert len(folders) == len(set(folders))
    assert all(re.search("(site|dist)-packages$", folder.name) for folder in folders)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_pauses_and_a_second_one_ends(number: signal.Signals):
    before = signal.getsignal(number)
    with commands.pausing() as should_pause:
        assert not should_pause()
        signal.raise_signal(number)
        assert should_pause()
        assert signal.getsignal(number) is before
    assert signal.getsignal(number) is before


def test_a_part_of_the_recipe_can_be_changed():
    recipe = changed(Recipe(), ["gap_share=0", "shape.layers=4", "runs_on=true", "rates.rest=0.001"])
    assert recipe == replace(
        Recipe(),
        gap_share=0.0,
        shape=replace(Recipe().shape, layers=4),
        runs_on=True,
        rates=replace(Recipe().rates, rest=0.001),
    )
