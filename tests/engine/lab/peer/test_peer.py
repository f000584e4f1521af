"""llama.cpp is asked in a process of its own; what goes wrong there is said in a sentence."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engine.common.errors import BadInput, EngineError
from engine.common.request import FillRequest
from engine.lab.peer.client import FOLDER, Beside, LlamaCpp, Order, peer_python
from engine.models.base import DraftTree
from tests.engine.coder import open_model, write_coder

PREFIX, SUFFIX = "def add(a, b):\n    return ", "\n\n\nprint(add(1, 2))\n"


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_coder(tmp_path_factory.mktemp("coder") / "tiny.gguf")


@pytest.fixture(scope="module")
def real(coder: Path) -> Iterator[LlamaCpp]:
    """The real one, with two threads and contexts of 256 tokens."""
    try:
        python = peer_python()
    except BadInput as error:
        pytest.skip(str(error))
    with LlamaCpp(coder, threads=2, context=256, python=python) as peer:
        yield peer


def test_where_there_is_no_environment_the_way_to_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with pytest.raises(BadInput, match=r"has no llama\.cpp: run `make bench-peer`, or set DG_LSP_PEER"):
        peer_python()


def test_an_environment_without_the_package_is_told(coder: Path):
    with pytest.raises(EngineError, match="No module named 'llama_cpp'"):
        LlamaCpp(coder, threads=1, context=64, python=Path(sys.executable))


def test_another_format_than_gguf_is_no_business_of_it():
    with Beside("bundled") as beside, pytest.raises(BadInput, match="bundled is no GGUF"):
        _ = beside.peer


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands in")
def test_a_process_that_ends_or_talks_nonsense_is_an_error(coder: Path, tmp_path: Path):
    ready = "{'version': '1', 'system': 'none'}".replace("'", '"')
    say = "input(); print(sys.argv[2], flush=True); input(); sys.exit('gone')"
    script = f"import sys; print(sys.argv[1], flush=True); {say}"
    for second, told in (("what?", "makes no sense"), ('{"error": "too long"}', "llama.cpp can't do that: too long")):
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c \"{script}\" '{ready}' '{second}'\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        with LlamaCpp(coder, threads=1, context=64, python=path) as peer:
            assert peer.about.version == "1"
            with pytest.raises(EngineError, match=told):
                peer.fill("a", "b")
            with pytest.raises(EngineError, match=r"ended \(gone\)"):
                peer.fill("a", "b")
            with pytest.raises(EngineError, match=r"ended \(gone\)"):
                peer.fill("a", "b")


def test_a_python_that_does_not_start_is_an_error(coder: Path, tmp_path: Path):
    with pytest.raises(EngineError, match="does not start"):
        LlamaCpp(coder, threads=1, context=64, python=tmp_path / "none")


@pytest.mark.parametrize("order", ["published", "suffix first"])
def test_it_fills_and_says_how_much_it_read(real: LlamaCpp, order: Order):
    said = real.fill(PREFIX, SUFFIX, order=order, max_tokens=5, fresh=True)
    assert real.fill(PREFIX, SUFFIX, order=order, max_tokens=5).text == said.text
    assert (said.tokens == 5) is not said.ended
    assert said.prompt_tokens > 10
    assert said.ms > 0
    assert real.fill(1000 * PREFIX, 1000 * SUFFIX, order=order, max_tokens=1).prompt_tokens == 256
    assert real.prefill(100) > 0


def test_it_says_what_our_own_network_says(real: LlamaCpp, coder: Path):
    """The same file and prompt, greedily: token by token the same text."""
    model = open_model(coder)
    prompt = model.prompt(FillRequest(prefix=PREFIX, suffix=SUFFIX))
    context = (*prompt.context, *model.tokenize(prompt.head))
    text = model.begin(model.encode(context))
    written: list[int] = []
    for _ in range(8):
        written.append(int(torch.argmax(model.check(text, DraftTree(ids=(), parents=()))[0])))
        model.check(text, DraftTree(ids=(written[-1],), parents=(-1,)))
        text = model.accept(text, [0])
    said = real.fill(PREFIX, SUFFIX, order="suffix first", max_tokens=8, fresh=True)
    assert said.prompt_tokens == len(context)
    assert said.text == model.detokenize(written)
