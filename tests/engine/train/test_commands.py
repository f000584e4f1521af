import json
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import engine.train.__main__ as commands
from engine.train.presets import PRESETS, changed
from engine.train.state import read_curve
from tests.engine.train.packages import install_python, python_code


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(commands, "reserved_files", list)
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
    assert "8 packages" in made.output or "9 packages" in made.output
    sizes = ("step_tokens=512", "canvases_from=1024", "decay=512")
    changes = [part for size in sizes for part in ("--set", size)]
    options = ("--tokens", "2048", *changes, "--threads", "1", "--no-compile")
    done = call("run", *options)
    assert done.exit_code == 0, done.output
    assert "Done: 2,048 tokens" in done.output
    assert "Done: 2,048 tokens" in call("run", *options).output
    (tmp_path / "figures.md").write_text("| pass@1 |\n|--:|\n| 12% |\n")
    figures = ("--evaluation", str(tmp_path / "figures.md"))
    written = call("export", "--out", str(tmp_path / "model"), "--gaps", "2", *figures)
    assert written.exit_code == 0, written.output
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert "| package0 | 1.0 | MIT | 1 |" in card
    assert "| Context tokens read | 2,048 |" in card
    assert "| canvas |" in card
    assert "## Evaluation\n\n| pass@1 |\n" in card
    assert (tmp_path / "model" / "loss.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "model" / "dg_lsp.json").read_text())["noise"] == "absorbing"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--preset", "huge"), "There is no preset 'huge'"),
        (("run", "--device", "tpu"), "There is no device 'tpu'"),
        (("run", "--set", "depth=3"), "A preset has no 'depth': use one of noise, tokens,"),
        (("run", "--set", "shape=3"), "A preset has no 'shape'"),
        (("run", "--set", "shape.layers=many"), "shape.layers can't be 'many': it is 6 in the preset."),
        (("run", "--set", "runs_on=perhaps"), "runs_on can't be 'perhaps': it is False in the preset."),
        (("run", "--set", "noise=white"), "noise can't be 'white': it is 'absorbing' in the preset."),
        (("run", "--corpus", "none", "--no-compile"), "holds no packed corpus"),
        (("export", "--out", "model", "--name", "none"), "holds no run"),
        (("compare", "--corpus", "none"), "holds no packed corpus"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], message: str):
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_packages_of_the_interpreter_and_its_base_are_found():
    folders = commands.installed_packages()
    assert any((folder / "typer").is_dir() for folder in folders)
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


def test_the_toy_is_made_by_the_same_recipe(tmp_path: Path):
    result = call("toy", "--out", str(tmp_path / "toy"), "--tokens", "1536")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "toy" / "model.safetensors").stat().st_size < 2_000_000
    assert read_curve(tmp_path) == []


def test_a_part_of_a_preset_can_be_changed():
    recipe = changed(PRESETS["small"], ["gap_share=0", "shape.layers=4", "runs_on=true", "rates.rest=0.001"])
    assert recipe == replace(
        PRESETS["small"],
        gap_share=0.0,
        shape=replace(PRESETS["small"].shape, layers=4),
        runs_on=True,
        rates=replace(PRESETS["small"].rates, rest=0.001),
    )
