"""Commands that ask the engine, in real processes."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.engine.processes import WAIT_S, Home
from tests.engine.processes import home as own_home

MARKED = "def add(a, b):\n    return ▮a + b▮\n\n\ndef sub(a, b):\n    return a - b\n"
CODE = MARKED.replace("▮", "")
GAP = CODE.replace("a + b", "▮")
NOW, RUNS, HERE = "cpu in the engine, now started", "cpu in the engine that runs", "cpu in this process"


class Shell:
    """Runs commands in a folder with a file to work on; they see the engine of `home`, and no other."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.file = home.folder / "a.py"
        self.file.write_text(GAP)

    def __call__(self, *arguments: str, code: int = 0, **environment: str) -> tuple[str, str]:
        """What `dg-lsp ARGUMENTS` prints, on both."""
        ended = subprocess.run(
            [sys.executable, "-m", "dg_lsp", *arguments],
            env={**self.home.environment, **environment},
            cwd=self.home.folder,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert ended.returncode == code, ended.stderr
        return ended.stdout, ended.stderr


@pytest.fixture
def shell() -> Iterator[Shell]:
    with own_home() as home:
        yield Shell(home)


def test_the_first_command_starts_the_engine_and_the_next_one_uses_it(shell: Shell):
    model = shell.home.oracle(MARKED)
    assert NOW in shell("fill", "a.py", "--model", model)[0]
    shown, _ = shell("fill", "a.py")
    assert RUNS in shown, "whatever model it has is good where none is named"
    assert "return ▮a + b▮" in shown
    assert json.loads(shell("fill", "a.py", "--model", model, "--json")[0])["candidates"][0]["text"] == "a + b"
    assert (shell.home.status() or {})["served"] == 3


def test_a_relative_path_names_the_same_model_to_the_engine(shell: Shell):
    shell.home.oracle(MARKED)
    shell("fill", "a.py", "--model", "oracle:oracle.json")
    assert RUNS in shell("fill", "a.py", "--model", "oracle:oracle.json")[0]


def test_the_canvas_can_be_watched_through_the_engine(shell: Shell):
    model = shell.home.oracle({"text": MARKED, "reveal": 2})
    assert "step" in shell("fill", "a.py", "--model", model, "--watch")[1]


def test_another_model_is_loaded_for_its_answer_alone(shell: Shell):
    shell("fill", "a.py", "--model", shell.home.oracle(MARKED))
    (shell.home.folder / "other.json").write_text(json.dumps({"cases": [{"text": MARKED}]}))
    shown, said = shell("fill", "a.py", "--model", "oracle:other.json")
    assert HERE in shown
    assert "the engine runs with model oracle:" in said


def test_without_the_engine_none_is_started(shell: Shell):
    assert HERE in shell("fill", "a.py", "--model", shell.home.oracle(MARKED), "--no-engine")[0]
    assert shell.home.status() is None


def test_rewrite_and_fix_ask_the_engine(shell: Shell):
    shell.file.write_text(CODE.replace("a + b", "a - b"))
    model = shell.home.oracle(MARKED)
    span = ("--range", "2:12-2:17", "--strength", "1")
    assert "+    return a + b" in shell("rewrite", "a.py", *span, "--model", model)[0]
    shell.file.write_text(CODE.replace("add(a, b)", "add(a, b"))
    shell("fix", "a.py", "--write")
    assert shell.file.read_text() == CODE
    assert (shell.home.status() or {})["served"] == 2


@pytest.mark.parametrize("model", ["oracle:nowhere.json", "vllm+http://127.0.0.1:1/x"])
def test_a_model_that_fails_leaves_no_engine_that_fails_whoever_comes_next(shell: Shell, model: str):
    shell("fill", "a.py", "--model", model, code=2)
    assert shell.home.status() is None


def test_what_can_not_be_asked_is_a_sentence(shell: Shell):
    assert "no/such-model" in shell("fill", "a.py", "--model", "no/such-model", code=2)[1]
    assert shell.home.status() is None
    assert "no device 'tpu'" in shell("fill", "a.py", "--device", "tpu", code=2)[1]
    assert "is not a folder" in shell("fill", "a.py", DG_LSP_RUNTIME_DIR=str(shell.file), code=2)[1]


def test_a_file_that_no_message_holds_names_the_way_out(shell: Shell):
    shell("fill", "a.py", "--model", shell.home.oracle(MARKED))
    shell.file.write_text(GAP + "# as large as no message may be\n" * 600_000)
    assert "With --no-engine" in shell("fill", "a.py", code=2)[1]
