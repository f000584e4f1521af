"""A suggestion in a real Emacs with lsp-mode, the third client of inline completion."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cases import ADD
from tests.e2e.editors.capabilities import check_capabilities
from tests.e2e.editors.conftest import EAGER, PATIENT, SERVE, bundled_case
from tests.e2e.editors.edit_cases import HINTED, LINES
from tests.e2e.editors.emacs import run
from tests.e2e.editors.install import emacs
from tests.e2e.editors.programs import programs
from tests.e2e.editors.remote import PROGRAM, settings
from tests.engine.models.remote.fake_server import KEY, fake_server
from tests.engine.processes import Home, home

ROOT = Path(__file__).parents[3]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not emacs.root().is_dir(), reason="Emacs is not installed; `make test-editors` brings it."),
]


def test_a_suggestion_is_shown_and_taken(tmp_path: Path, shared: Home):
    shown, text = suggested(ADD, tmp_path, shared, PATIENT)
    assert (shown, text) == (ADD.split("▮")[1], ADD.replace("▮", ""))


def test_its_capabilities_are_those_of_its_file(tmp_path: Path, shared: Home):
    programs(tmp_path)
    suggested(ADD, tmp_path, shared, PATIENT, [str(tmp_path / "recording"), "serve"])
    check_capabilities("emacs", tmp_path)


def test_the_bundled_model_suggests(tmp_path: Path):
    marked = bundled_case()
    before, _, after = marked.split("▮")
    with home() as place:
        shown, text = suggested(marked, tmp_path, place, EAGER)
    assert shown
    assert text == f"{before}{shown}{after}"


def test_a_suggestion_of_a_server_is_shown_and_taken(tmp_path: Path):
    with fake_server() as server, home(DG_LSP_SERVER_KEY=KEY) as place:
        marked = PROGRAM.replace("▮", "=▮ d * 7▮")
        shown, text = suggested(marked, tmp_path, place, settings(f"http://127.0.0.1:{server.port}"))
    assert (shown, text) == (" d * 7", marked.replace("▮", ""))


def test_a_named_rewrite_is_done_and_undone_in_one_step(tmp_path: Path, shared: Home):
    marked = LINES.replace("def grow", "▮def grow")
    shown, _ = done(marked, tmp_path, shared, PATIENT, SERVE, DG_TEST_ACTION="Add type hints")
    assert json.loads(shown) == [HINTED, LINES]


def suggested(
    marked: str, folder: Path, place: Home, settings: dict[str, Any], server: Sequence[str] = SERVE
) -> tuple[str, str]:
    """What Emacs shows at the first marker, and the file after it was taken and saved."""
    shown, text = done(marked, folder, place, settings, server)
    return json.loads(shown), text


def done(
    marked: str, folder: Path, place: Home, settings: dict[str, Any], server: Sequence[str], **more: str
) -> tuple[str, str]:
    """What Emacs wrote down, and the file after it."""
    before, _, after = marked.partition("▮")
    after = after.partition("▮")[2] or after
    file = folder / "file.py"
    file.write_text(before + after)
    run(
        Path(__file__).with_name("emacs.el"),
        folder,
        place,
        ["-L", str(ROOT / "editors" / "emacs")],
        DG_TEST_PACKAGES=str(emacs.root() / "usr" / "share" / "emacs" / "site-lisp" / "elpa-src"),
        DG_TEST_COMMAND=json.dumps(server),
        DG_TEST_SETTINGS=json.dumps(settings),
        DG_TEST_FILE=str(file),
        DG_TEST_OFFSET=str(len(before)),
        **more,
    )
    return (folder / "shown.json").read_text(), file.read_text()
