"""What is said before a run is what it takes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.loader.checkpoint import read_checkpoint
from engine.loader.quantizing import quantize

ROOT = Path(__file__).parents[3]
TOY = ROOT / "tests" / "models" / "toy-experts"
SCRIPT = """
import json, sys
from dataclasses import replace
from pathlib import Path
from engine.loader.loading import load
from engine.tune.learn import learn
from engine.tune.lessons import Lessons
from engine.tune.lora import RecomputedGemma
from engine.tune.plan import plan
from engine.tune.tuning import learning
from engine.train.run import BatchSource
from tests.engine.train.tiny import CPU, toy_corpus, tiny

rows = 6
recipe = replace(tiny(), contexts=(160,), step_tokens=rows * 160, tokens=rows * 160, canvases_from=0, decay=0)
model = load(sys.argv[1], "cpu").model
lessons = Lessons(source=BatchSource(corpus=toy_corpus(), recipe=recipe, seed=0))
with learning(model, None, 0) as (network, pairs):
    planned = plan(network, pairs, lessons, CPU)
    learn(network, pairs, lessons, recipe, Path(sys.argv[2]), {}, CPU, lambda line: None)
# Not that of getrusage, which begins with what the process had that started this one.
peak = 1024 * int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
recomputed = isinstance(network, RecomputedGemma)
print(json.dumps({"planned": planned.nbytes, "training": planned.training, "peak": peak, "recomputed": recomputed}))
"""


@pytest.fixture(scope="module", params=["in full", "in 4 bit"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "in full":
        return TOY
    out = tmp_path_factory.mktemp("int4") / "toy"
    quantize(read_checkpoint(TOY, "toy"), out, lambda percent: None)
    return out


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_told_to_within_a_tenth(model: Path, tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(model), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["recomputed"] == (model != TOY)
    assert abs(said["planned"] - said["peak"]) < 0.1 * said["peak"], said
    # What comes on top is more than the tenth's error would hide.
    assert abs(said["planned"] - said["peak"]) < said["training"], said
