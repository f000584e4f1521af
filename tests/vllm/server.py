"""A real vLLM server on the CPU, as a test needs it: started, looked at, killed, started again."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
MODEL = HERE.parent / "models" / "toy-uniform"
NAME, KEY = "toy", "secret"
START_S = 300.0
"""On two busy cores."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class VllmServer:
    """`VLLM_VENV` names the environment that it is installed in: see the Makefile."""

    def __init__(self, log: Path, *options: str) -> None:
        self.port = free_port()
        self._log = log
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def model(self) -> str:
        """The name that dg-lsp knows it by."""
        return f"vllm+{self.url}/{NAME}?tokenizer={MODEL}"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(HERE / "serve.sh"), str(MODEL), NAME, str(self.port), *self._options],
                env={**os.environ, "VENV": os.environ["VLLM_VENV"]},
                stdout=log,
                stderr=log,
                # A group of its own: it has children, which are to end with it.
                start_new_session=True,
            )

    def wait(self) -> None:
        """Until it answers."""
        ends = time.monotonic() + START_S
        while not self.answers():
            assert self._process is not None
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() < ends, self._log.read_text()[-3000:]
            time.sleep(0.1)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def metric(self, name: str) -> float:
        return metric(self.url, name)


def metric(url: str, name: str, label: str = "") -> float:
    """The sum of a metric over its labels, by its name without `vllm:`; of those with that `label` alone."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        told = answer.read().decode()
    found = re.findall(rf"^vllm:{name}{{([^\n]*)}} (\S+)$", told, re.MULTILINE)
    return sum(float(value) for labels, value in found if label in labels)
