"""Downloading a model by a command: a real process, how far it has come, and what became of it."""

import asyncio
import shutil
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lsprotocol.types import ShowMessageParams
from pygls.progress import Progress

import engine
from dg_lsp.backend.client import EngineClient, EngineFailure, Launch
from dg_lsp.backend.resident import Resident
from dg_lsp.backend.status import StatusBoard
from dg_lsp.handlers.pull import pull, put_to_use
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.params import ExecuteCommandParams
from dg_lsp.protocol.progress import ProgressBars
from engine.models.checkpoints.coders import CODERS
from tests.engine.coder import write_coder
from tests.engine.hub import serve_hub
from tests.engine.package_index import Carriers, serve_carriers
from tests.engine.processes import home, running, wait_until

CODER = CODERS["coder-0.5b"]


class Client:
    """Takes every bar, and messages."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.bars: list[Any] = []
        self._tasks = set[asyncio.Task[None]]()
        working = ProgressBars(Progress(self), lambda work: self._tasks.add(asyncio.create_task(work)), lambda: True)  # type: ignore[arg-type]
        self.session = cast(DgServer, SimpleNamespace(working=working, window_show_message=self.tell))

    async def send_request_async(self, method: str, params: Any) -> None: ...

    def notify(self, method: str, params: Any) -> None:
        self.bars.append(params.value)

    async def settled(self) -> None:
        await asyncio.gather(*self._tasks)

    def tell(self, params: ShowMessageParams) -> None:
        self.shown.append(params.message)


@pytest.fixture
def carriers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Carriers]:
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path))
    with serve_carriers() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.url}/simple")
        monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        yield served


def asked(**given: Any) -> ExecuteCommandParams:
    return ExecuteCommandParams(command="dg.pull", arguments=[given], work_done_token="own")


@pytest.mark.asyncio
async def test_how_far_it_has_come_is_shown_and_what_went_wrong_said(carriers: Carriers):
    carriers.files[f"/{CODER.hub_id}/resolve/main/{CODER.file}"] = bytes(6_000_000)
    client = Client()
    answer = await pull(client.session, asked(model="coder-0.5b"))
    await client.settled()
    assert not answer["done"]
    assert client.shown == [answer["message"]]
    assert f"What came is not the published {CODER.file}" in answer["message"]
    begun, *reports, ended = client.bars
    assert (begun.kind, begun.title, begun.percentage) == ("begin", "Downloading coder-0.5b", 0)
    assert any("of 491.4 MB" in each.message for each in reports)
    assert ended.kind == "end"


@pytest.mark.asyncio
async def test_how_far_a_gguf_of_the_hub_has_come_is_shown_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "hub"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    write_coder(folder / "tiny-q8_0.gguf")
    client = Client()
    with serve_hub(folder, "someone/tiny") as hub:
        hub.headers = {"ETag": f'"{"0" * 64}"'}
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path / "state"))
        answer = await pull(client.session, asked(model="someone/tiny"))
    await client.settled()
    assert "What came is not the published tiny-q8_0.gguf" in answer["message"]
    assert any(each.percentage == 100 and "of 1" in each.message for each in client.bars[1:-1])


@pytest.mark.asyncio
async def test_a_name_can_be_no_option(carriers: Carriers):
    answer = await pull(Client().session, asked(model="--help"))
    assert not answer["done"]
    assert "is no Hub id" in answer["message"]


@pytest.mark.parametrize(
    ("model", "restarts", "said"),
    [
        ("auto", True, "coder-9 is here. The engine runs bundled: `dg-lsp doctor` says why."),
        ("bundled", False, "coder-9 is here. The engine runs bundled: `dg-lsp engine restart --model coder-9` changes"),
    ],
)
@pytest.mark.asyncio
async def test_an_engine_that_chooses_its_model_is_restarted(monkeypatch, model: str, restarts: bool, said: str):
    with home() as place, running(place, "--model", model):
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            monkeypatch.setenv(name, place.environment[name])

        async def launch() -> Launch:
            return Launch()

        client = EngineClient(launch)
        resident = Resident(client, StatusBoard(lambda _: None))
        try:
            before = (await client.status()).pid
            assert (await put_to_use(resident, "coder-9")).startswith(said)
            assert ((await client.status()).pid != before) == restarts
            await asyncio.to_thread(wait_until, lambda: client.state.name == "ready", "the model in memory")
        finally:
            await resident.close()


@pytest.mark.asyncio
async def test_an_engine_is_started_that_lacked_only_the_model(monkeypatch, tmp_path: Path):
    with home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            monkeypatch.setenv(name, place.environment[name])
        model = tmp_path / "model"

        async def launch() -> Launch:
            return Launch(model=str(model))

        client = EngineClient(launch)
        resident = Resident(client, StatusBoard(lambda _: None))
        try:
            with pytest.raises(EngineFailure, match="There is no model"):
                await client.status()
            shutil.copytree(Path(engine.__file__).parent / "weights" / "bundled", model)
            assert await put_to_use(resident, str(model)) == f"{model} is here, and the engine runs it."
        finally:
            await resident.close()
