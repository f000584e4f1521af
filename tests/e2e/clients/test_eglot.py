"""Suggestions as completions in Emacs with eglot, which it brings along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.cases import ADD, CALL, MONEY, PARTED, SWALLOWED
from tests.e2e.clients.conftest import taken
from tests.e2e.editors.conftest import PATIENT, SERVE
from tests.e2e.editors.emacs import run
from tests.e2e.editors.install import emacs
from tests.engine.processes import Home

pytestmark = pytest.mark.skipif(
    not emacs.root().is_dir(), reason="Emacs is not installed; `make test-clients` brings it, on Debian."
)


@pytest.mark.parametrize("case", [ADD, CALL, MONEY, PARTED, SWALLOWED])
def test_a_suggestion_is_taken(tmp_path: Path, shared: Home, case: str):
    before, _, after = case.split("▮")
    file = tmp_path / "file.py"
    file.write_text(before + after)
    run(
        Path(__file__).with_name("eglot.el"),
        tmp_path,
        shared,
        DG_TEST_COMMAND=json.dumps(SERVE),
        DG_TEST_SETTINGS=json.dumps(PATIENT),
        DG_TEST_FILE=str(file),
        DG_TEST_OFFSET=str(len(before)),
    )
    assert file.read_text() == taken(case)
