"""What stands in the place of a server: the real one, and some that fail in their own ways."""

from __future__ import annotations

import sys
from pathlib import Path

_MAIN = "from dg_lsp.__main__ import main\nmain()\n"
_REAL = f"#!{sys.executable}\n{_MAIN}"
_CRASHING = f"#!{sys.executable}\nimport os, threading\nthreading.Timer(3, os._exit, [3]).start()\n{_MAIN}"
_HANGING = f"#!{sys.executable}\nimport time\ntime.sleep(600)\n"
_OUTDATED = f'#!{sys.executable}\nimport dg_lsp\ndg_lsp.__version__ = "0.0.9"\n{_MAIN}'
INITIALIZE = "initialize.json"
"""Where the recording server leaves the client's first message, beside itself."""
_RECORDING = f"""#!{sys.executable}
import json
from pathlib import Path
from dg_lsp.protocol import initialize
answer_to = initialize.answer_to
def kept(message):
    Path(__file__).with_name("{INITIALIZE}").write_text(json.dumps(message))
    return answer_to(message)
initialize.answer_to = kept
{_MAIN}"""
PROGRAMS = {
    "dg-lsp": _REAL,
    "crashing": _CRASHING,
    "hanging": _HANGING,
    "outdated": _OUTDATED,
    "recording": _RECORDING,
    "project/.venv/bin/dg-lsp": _REAL,
    "home/.local/bin/dg-lsp": _REAL,
}


def programs(folder: Path) -> None:
    """Write them all into a folder."""
    for name, text in PROGRAMS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
