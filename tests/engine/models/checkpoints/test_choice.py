"""Which model "auto" is, and why."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from dg_lsp.backend.launch import Launch
from dg_lsp.cli import run
from dg_lsp.config.settings import EngineSettings
from engine.cli.engine import _chosen, as_before
from engine.common.messages import EngineStatus
from engine.common.runtime_paths import data_dir, lock_path, make_runtime_dir
from engine.models import formats
from engine.models.checkpoints import choice
from engine.models.checkpoints.catalog import models_dir
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.choice import Hardware, choose, fill_ms, needed_nbytes, resolved, tell_once
from engine.models.checkpoints.coders import CODERS
from engine.models.checkpoints.measured import FillTimes
from engine.server.options import check_options, named_from_here
from engine.server.settings import EngineOptions
from tests.engine.coder import write_coder

ROOMY = Hardware(free_nbytes=16 << 30, all_nbytes=32 << 30, cores=2, int8=True, vnni=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def have(*names: str) -> None:
    models_dir().mkdir(exist_ok=True)
    for name in names:
        write_coder(models_dir() / CODERS[name].file)


def test_without_a_coder_it_is_the_bundled_model_and_says_what_a_coder_would_bring():
    chosen = choose(ROOMY)
    assert chosen.name == resolved("auto") == "bundled"
    assert "`dg-lsp pull coder-1.5b` (1.1 GB, once)" in chosen.advice
    assert resolved("some/model") == "some/model"


@pytest.mark.parametrize(
    ("names", "hardware", "name", "why"),
    [
        (
            ["coder-0.5b", "coder-1.5b"],
            ROOMY,
            "coder-1.5b",
            "610 ms a suggestion (by its processor, not",
        ),
        (["coder-0.5b"], ROOMY, "coder-0.5b", "about 380 ms a suggestion"),
        (["coder-0.5b", "coder-1.5b"], replace(ROOMY, cores=1), "coder-0.5b", "coder-1.5b would take about 1220 ms"),
        (["coder-1.5b"], replace(ROOMY, cores=1), "bundled", "and 1000 are in time"),
        (
            ["coder-1.5b"],
            replace(ROOMY, free_nbytes=1 << 30),
            "bundled",
            "leaves 4.2 GiB to other programs, but 1.0 GiB",
        ),
        (["coder-1.5b"], replace(ROOMY, cores=4, vnni=False), "coder-1.5b", "about 440 ms a suggestion"),
    ],
)
def test_the_best_that_fits_and_answers_in_time_is_chosen(names: list[str], hardware: Hardware, name: str, why: str):
    have(*names)
    chosen = choose(hardware)
    assert chosen.name == name
    assert why in chosen.why
    assert not chosen.advice


def test_a_damaged_file_is_passed_over():
    have("coder-0.5b")
    (models_dir() / CODERS["coder-1.5b"].file).write_bytes(b"GGUF")
    chosen = choose(ROOMY)
    assert chosen.name == "coder-0.5b"
    assert "cut off or damaged" in chosen.why


def test_cores_beyond_eight_do_not_count():
    assert fill_ms("coder-1.5b", replace(ROOMY, cores=64)) == fill_ms("coder-1.5b", replace(ROOMY, cores=8))


@pytest.mark.parametrize(
    ("machine", "flags", "has"),
    [
        ("x86_64", "flags : sse2 avx2 avx512_vnni", (True, True)),
        ("AMD64", "flags : avx2 avx_vnni", (True, True)),
        ("x86_64", "flags : sse2 avx2", (True, False)),
        ("x86_64", "flags : sse2", (False, False)),
        ("arm64", "", (False, False)),
    ],
)
def test_products_of_eight_bits_are_known_by_the_processors_flags(machine: str, flags: str, has: tuple[bool, bool]):
    assert choice._eight_bits(machine, [flags]) == has  # pyright: ignore[reportPrivateUsage]


def test_this_processor_keeps_the_numbers_that_are_planned_for_it():
    chosen = formats.formats_of(formats._this_processor())  # pyright: ignore[reportPrivateUsage]
    here = choice.this_hardware()
    assert here.int8 == chosen.int8
    assert not chosen.int8 or here.vnni == (chosen.int8_largest == 127)


def test_where_no_whole_numbers_are_multiplied_more_memory_is_needed():
    have("coder-1.5b")
    checkpoint = read_checkpoint(models_dir() / CODERS["coder-1.5b"].file, "coder-1.5b")
    assert needed_nbytes(checkpoint, replace(ROOMY, int8=False)) > needed_nbytes(checkpoint, ROOMY)


def test_an_engine_that_runs_gives_way_to_the_next_one():
    have("coder-1.5b")
    scarce = replace(ROOMY, free_nbytes=1 << 30)
    assert choose(scarce).name == "bundled"
    assert choose(replace(scarce, held_nbytes=lambda: 8 << 30)).name == "coder-1.5b"


def test_beside_an_engine_that_stays_its_memory_is_not_free(monkeypatch: pytest.MonkeyPatch):
    have("coder-1.5b")
    scarce = replace(ROOMY, free_nbytes=1 << 30, held_nbytes=lambda: 8 << 30)
    monkeypatch.setattr(choice, "this_hardware", lambda: scarce)
    assert (resolved("auto"), resolved("auto", beside=True)) == ("coder-1.5b", "bundled")


def test_the_memory_of_an_engine_is_that_of_who_holds_its_lock():
    make_runtime_dir()
    program = "import sys; lock = open(sys.argv[1], 'w'); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, str(lock_path())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as engine:
        assert engine.stdin
        assert engine.stdout
        assert engine.stdout.readline()
        assert choice._engine_nbytes() > 2_000_000  # pyright: ignore[reportPrivateUsage]
        engine.stdin.close()
    assert choice._engine_nbytes() == 0  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("machine", [replace(ROOMY, free_nbytes=1 << 30), replace(ROOMY, cores=1, vnni=False)])
def test_no_coder_is_recommended_where_none_could_run_well(machine: Hardware):
    slow = replace(machine, all_nbytes=4 << 30)
    assert "coder-1.5b" not in choose(slow).advice


def test_what_a_coder_would_bring_is_told_once():
    chosen = choose(ROOMY)
    assert tell_once(chosen) == chosen.advice
    assert tell_once(chosen) == ""


def test_an_engine_is_started_with_what_was_chosen(monkeypatch: pytest.MonkeyPatch):
    have("coder-1.5b")
    monkeypatch.setattr(choice, "this_hardware", lambda: ROOMY)
    assert named_from_here(EngineOptions()).model == "coder-1.5b"
    monkeypatch.setattr(choice, "this_hardware", lambda: replace(ROOMY, cores=1))
    assert named_from_here(EngineOptions()).model == "bundled"


@pytest.mark.parametrize("names", [[], ["coder-0.5b"]])
def test_an_engine_that_is_to_choose_is_not_refused(names: list[str]):
    have(*names)
    check_options(EngineOptions())


def test_a_restarted_engine_chooses_anew_where_nobody_named_a_model(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(choice, "this_hardware", lambda: ROOMY)
    chosen = named_from_here(EngineOptions())
    assert (chosen.model, chosen.auto) == ("bundled", True)
    named = named_from_here(EngineOptions(model="bundled"))
    assert (named.model, named.auto) == ("bundled", False)
    have("coder-1.5b")
    assert named_from_here(as_before(status(chosen))).model == "coder-1.5b"
    assert named_from_here(as_before(status(named))).model == "bundled"
    assert _chosen(status(named)) == ""
    assert "a restart would take coder-1.5b: the best on this disk" in _chosen(status(chosen))


def status(options: EngineOptions) -> EngineStatus:
    """That of an engine with these options."""
    fields = {field.name: 0 for field in structs.fields(EngineStatus) if field.required}
    told = {"model": options.model, "auto": options.auto, "requested_device": "cpu", "http": "", "http_token_file": ""}
    return EngineStatus(**(fields | told))


def test_an_editors_auto_leaves_the_choice_to_the_engine():
    assert Launch().chosen(EngineSettings()).model == ""
    assert Launch().chosen(EngineSettings(model="bundled")).model == "bundled"


def test_the_list_of_models_says_which_and_why(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    have("coder-1.5b")
    monkeypatch.setattr(choice, "this_hardware", lambda: ROOMY)
    assert run(["models"]) == 0
    out = capsys.readouterr().out
    assert "auto is coder-1.5b: the best on this disk that fits: about 610 ms a suggestion (" in out
    assert "coder-1.5b\n    disk, " in out
    assert "coder-0.5b\n    491.4 MB to download\n    licence: Apache-2.0" in out


def test_what_was_measured_here_counts_for_a_day(monkeypatch: pytest.MonkeyPatch):
    have("coder-0.5b", "coder-1.5b")
    times = FillTimes("coder-1.5b")
    for ms in (1300.0, 900.0, 1400.0) * 4:
        assert choose(ROOMY).name == "coder-1.5b"
        times.add(ms)
    assert choose(ROOMY).name == "coder-0.5b"
    assert "coder-1.5b would take about 1300 ms a suggestion, and 1000 are in time" in choose(ROOMY).why
    times = FillTimes("coder-1.5b")
    for ms in (90.0, 2000.0, 90.0) * 4:  # what else runs now and then does not count
        times.add(ms)
    assert choose(ROOMY).name == "coder-1.5b"
    assert "about 90 ms a suggestion (measured here)" in choose(ROOMY).why
    monkeypatch.setattr(time, "time", lambda: 2e10)
    assert "about 610 ms" in choose(ROOMY).why


@pytest.mark.parametrize("said", ["", "[]", "{", '{"coder-1.5b": 3}', '{"coder-1.5b": ["a", "b"]}'])
def test_a_file_of_times_that_is_damaged_says_nothing(home: Path, said: str):
    have("coder-1.5b")
    FillTimes("some/model").add(5.0)
    (data_dir() / "fill-times.json").write_text(said)
    assert "about 610 ms" in choose(ROOMY).why
