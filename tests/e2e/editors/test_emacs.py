"""A suggestion in a real Emacs with lsp-mode, the third client of inline completion."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.cases import ADD
from tests.e2e.editors.conftest import PATIENT, SERVE
from tests.e2e.editors.install import emacs
from tests.engine.processes import Home

ROOT = Path(__file__).parents[3]
QUIET = "(setq native-comp-jit-compilation nil native-comp-enable-subr-trampolines nil)"

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not emacs.root().is_dir(), reason="Emacs is not installed; `make test-editors` brings it."),
]


def test_a_suggestion_is_shown_and_taken(tmp_path: Path, shared: Home):
    root = emacs.root()
    before, answer, after = ADD.split("▮")
    file = tmp_path / "add.py"
    file.write_text(before + after)
    (lisp,) = root.glob("usr/share/emacs/[0-9]*/lisp")
    (dump,) = root.glob("usr/libexec/emacs/*/*/*.pdmp")
    folders = [
        lisp,
        *(path for path in lisp.rglob("*") if path.is_dir()),
        *root.glob("usr/share/emacs/site-lisp/elpa-src/*"),
    ]
    done = subprocess.run(
        [
            *(str(root / "usr" / "bin" / "emacs-nox"), f"--dump-file={dump}", "-Q", "--batch", "--eval", QUIET),
            *("-L", str(ROOT / "editors" / "emacs"), "-l", str(Path(__file__).with_name("emacs.el"))),
        ],
        env={
            **shared.environment,
            "HOME": str(tmp_path),
            "EMACSLOADPATH": ":".join(map(str, folders)),
            "EMACSDATA": str(lisp.parent / "etc"),
            "EMACSPATH": str(dump.parent),
            "DG_TEST_COMMAND": json.dumps(SERVE),
            "DG_TEST_SETTINGS": json.dumps(PATIENT),
            "DG_TEST_FILE": str(file),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"SHOWN {answer}" in done.stderr or f"SHOWN {answer}" in done.stdout, done.stderr[-2000:]
    assert file.read_text() == ADD.replace("▮", "")
