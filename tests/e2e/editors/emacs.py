"""A real Emacs that runs one script and ends."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.editors.install import emacs
from tests.engine.processes import Home

_QUIET = "(setq native-comp-jit-compilation nil native-comp-enable-subr-trampolines nil)"


def run(script: Path, folder: Path, home: Home, options: Sequence[str] = (), **variables: str) -> None:
    """Run a script in `folder`, which is its home, too."""
    root = emacs.root()
    (lisp,) = root.glob("usr/share/emacs/[0-9]*/lisp")
    (dump,) = root.glob("usr/libexec/emacs/*/*/*.pdmp")
    done = subprocess.run(
        [
            *(str(root / "usr" / "bin" / "emacs-nox"), f"--dump-file={dump}", "-Q", "--batch", "--eval", _QUIET),
            *(*options, "-l", str(script)),
        ],
        env={
            **home.environment,
            "HOME": str(folder),
            "EMACSLOADPATH": ":".join(map(str, [lisp, *(path for path in lisp.rglob("*") if path.is_dir())])),
            "EMACSDATA": str(lisp.parent / "etc"),
            "EMACSPATH": str(dump.parent),
            **variables,
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
