"""What is left out of torch until somebody needs it, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.fill.sampling import seeded
from tests.engine.processes import WAIT_S

TOY = Path(__file__).parents[2] / "models" / "toy-uniform"

BEGIN = """
import json, sys
from engine.common import torch_import
torch_import.defer()
import torch

def attend():
    torch.nn.functional.scaled_dot_product_attention(*[torch.empty(1, 2, 4, 8, device="meta")] * 3)

def able():
    try:
        attend()
    except NotImplementedError:
        return False
    return True
"""

pytestmark = pytest.mark.skipif(
    tuple(map(int, version("torch").split(".")[:2])) > (2, 13), reason="of this torch nothing is left out yet"
)


def told_by(script: str, begin: str = BEGIN) -> Any:
    """What it prints at last."""
    command = [sys.executable, "-c", begin + script]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_what_is_left_out_is_there_once_torch_is_complete():
    assert told_by("before = able(); torch_import.complete(); print(json.dumps([before, able()]))") == [False, True]


def test_whoever_asks_for_something_of_it_gets_it():
    asked = "from torch._meta_registrations import meta_mm; print(json.dumps([meta_mm.__name__, able()]))"
    assert told_by(asked) == ["meta_mm", True]


def test_looking_through_all_modules_asks_for_nothing():
    looked = "[getattr(each, '__file__', None) for each in list(sys.modules.values())]; print(json.dumps(able()))"
    assert told_by(looked) is False


def test_a_torch_that_is_there_already_stays_whole():
    assert told_by("torch_import.complete(); torch_import.defer(); print(json.dumps(able()))") is True


FILL = """
from engine.fill.loading import load
filled = load({name!r}, "cpu").fill("def add(a, b):\\n    return ", "\\n", language="python", max_tokens=8)
print(json.dumps([[each.text for each in filled.candidates], "torch._prims" in sys.modules]))
"""


def test_the_bundled_model_fills_without_it_what_it_fills_with_it():
    texts, whole = told_by(FILL.format(name="bundled"))
    assert not whole
    assert [texts, True] == told_by("torch_import.complete()" + FILL.format(name="bundled"))


def test_other_models_have_all_of_torch():
    assert told_by(FILL.format(name=str(TOY)))[1]


def test_what_draws_for_a_request_is_its_own():
    before = torch.get_rng_state()
    drawn = torch.rand(9, generator=seeded("cpu", 7))
    assert torch.equal(drawn, torch.rand(9, generator=torch.Generator().manual_seed(7)))
    assert torch.equal(before, torch.get_rng_state())


def test_the_paths_of_all_modules_are_not_asked_for():
    """To find the module of one frame, which torch wants to know twice."""
    counted = BEGIN.replace("import json, sys", "import json, os, sys; real, asked = os.path.realpath, []").replace(
        "import torch\n",
        "os.path.realpath = lambda path, **more: asked.append(path) or real(path, **more)\nimport torch\n",
        1,
    )
    frame = (
        "import inspect; frame = sys._getframe(); print(json.dumps([len(asked), inspect.getmodule(frame).__name__]))"
    )
    count, name = told_by(frame, begin=counted)
    assert name == "__main__"
    assert count < 100
