"""What a step's sampler takes, in a process of its own."""

import os
import subprocess
import sys

import pytest

MOST = 64_000_000
SAMPLING = """
import sys
from pathlib import Path
import torch
from torch.nn.functional import linear
from engine.fill.constraints import Bans
from engine.fill.distributions import look
from engine.models.logits import Head, Logits

torch.set_num_threads(1)
size, rows, tokens = int(sys.argv[1]), 256, 262_144

def peak():
    return 1024 * int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

def logits(hidden, chosen):
    return linear(hidden, table[chosen]).float().div_(30).tanh_() * 30

@torch.inference_mode()
def step(count):
    found = look(
        Logits(hidden=hidden[:count], head=Head(logits, tokens, table)),
        Bans(out=[(None, torch.arange(100))], only=[(torch.arange(count) == 3, torch.arange(70_000))]),
        temperature=0.5, drawing=True, generator=torch.Generator().manual_seed(0),
        queried=torch.arange(16).expand(count, -1), top=8,
    )
    return found.signal.embeddings().shape, found.drawn

table = torch.ones(tokens, size, dtype=torch.bfloat16)
hidden = torch.randn(rows, size, generator=torch.Generator().manual_seed(0)).bfloat16()
# What a library keeps for itself from its first use on.
step(1)
Path("/proc/self/clear_refs").write_text("5")
before = peak()
step(rows)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_step_holds_all_logits():
    # They would take 268 MB in float32, once. Whatever is freed goes back at once, else the peak counts what glibc
    # keeps, which is another amount in each run.
    done = subprocess.run(
        [sys.executable, "-c", SAMPLING, "16"],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"},
    )
    assert 0 < int(done.stdout) <= MOST
