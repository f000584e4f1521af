"""The adapter of a folder, from the file in an editor to the answer and the status."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from engine.fill.loading import load
from engine.models.adapters.metadata import adapters_dir
from tests.e2e.window import Window, until, window
from tests.engine.adapters import put_adapter
from tests.engine.processes import home

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOY = Path(__file__).parents[1] / "models" / "toy-uniform"
SETTINGS = {"inline": {"threshold": 0, "deadline_ms": 60_000}, "context": {"workspace": False}}
CODE = "let a = 3\nlet b = ▮\nprint a\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def held(tmp_path_factory: pytest.TempPathFactory):
    base: Any = load(str(TOY), "cpu").model
    with home() as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DG_LSP_STATE_DIR", place.environment["DG_LSP_STATE_DIR"])
        root = tmp_path_factory.mktemp("code")
        learnt, outdated, brought = (root / name for name in ("learnt", "outdated", "brought"))
        put_adapter(base, learnt, seed=21)
        put_adapter(base, outdated, seed=22, fingerprint="0" * 16)
        # What a repository brings along is none of ours.
        shutil.copytree(adapters_dir(), brought / ".dg-lsp" / "adapters")
        async with window(place, "neovim", options=SETTINGS, model=str(TOY), folders=[root]) as opened:
            yield opened, learnt, outdated, brought


async def asked_in(held: Window, folder: Path) -> dict[str, Any]:
    """The status after a suggestion was asked for in a file of a folder."""
    held.open(CODE, path=f"{folder.name}/src/a.toy")
    await held.ghosts(invoked=True)
    return await held.status(engine=True)


async def test_the_folder_of_a_file_decides_what_answers(held: Any):
    opened, learnt, _, brought = held
    assert (await asked_in(opened, learnt))["adapter"] == str(learnt)
    assert (await asked_in(opened, brought))["adapter"] == ""
    told = await asked_in(opened, learnt)
    assert told["adapter"] == str(learnt)
    assert [each["folder"] for each in told["engine"]["adapters"]] == [str(learnt)]


async def test_what_is_of_other_weights_is_off_and_the_status_says_so(held: Any):
    opened, _, outdated, _ = held
    assert (await asked_in(opened, outdated))["adapter"] == ""

    async def told() -> bool:
        return f"dg-lsp tune {outdated}" in (await opened.status())["message"]

    await until(told, "a word on weights that are others now")
