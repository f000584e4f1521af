"""How the editor's settings for the engine reach it, and what is said where they came too late."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.e2e.cases import ADD
from tests.e2e.test_start import HELLO, send, served
from tests.e2e.window import until, window
from tests.engine.processes import home, wait_until
from tests.engine.released import write_checkpoint


def engine_settings(model: str) -> dict[str, object]:
    return {"engine": {"model": model, "device": "cpu", "unload_after_s": 33, "exit_after_s": 77}}


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["initializationOptions", "workspace/configuration"])
async def test_an_engine_is_started_as_the_editor_s_settings_say(how):
    with home() as place:
        settings = engine_settings(place.oracle(ADD))
        told = {"options": settings} if how == "initializationOptions" else {"configuration": {"": {"dg": settings}}}
        async with window(place, **told) as held:
            held.open(ADD)
            assert await held.ghost() == "a + b"
            engine = (await held.status(engine=True))["engine"]
            has = {name: engine[name] for name in ("requested_device", "unload_after_s", "exit_after_s")}
            assert engine["model"] == settings["engine"]["model"]
            assert has == {"requested_device": "cpu", "unload_after_s": 33, "exit_after_s": 77}
            assert held.client.log_messages == []


def test_a_relative_folder_is_one_of_the_user_not_of_the_project(tmp_path):
    user, project = tmp_path / "user", tmp_path / "project"
    model = user / "models" / "own"
    model.mkdir(parents=True)
    write_checkpoint(model)
    shutil.copytree(user, project)
    with home(HOME=str(user)) as place, served(place, errors=subprocess.DEVNULL, cwd=project) as process:
        options = {"engine": {"model": "models/own"}}
        send(process, id=1, method="initialize", params={**HELLO, "initializationOptions": options})
        send(process, method="initialized", params={})
        wait_until(place.answers, "the engine")
        status = place.status()
        assert status is not None
        assert status["model"] == str(model)


@pytest.mark.asyncio
async def test_an_engine_that_runs_otherwise_is_named_once_with_the_way_out(shared):
    options = {"engine": {"model": "oracle:/my model.json"}}
    async with window(shared, options=options, log="oracle:/my model.json") as held:

        async def said() -> list[str]:
            return [message.message for message in held.client.log_messages]

        (first,) = await until(said, "the sentence")
        assert "`dg-lsp engine restart --model 'oracle:/my model.json'`" in first
        assert f"model {(await held.status(engine=True))['engine']['model']}," in first
        for _ in range(2):
            held.notify("workspace/didChangeConfiguration", {"settings": {"engine": {"exit_after_s": 5}}})

        async def said_more() -> list[str]:
            return (await said())[1:]

        (second,) = await until(said_more, "the second sentence")
        assert "--model 'oracle:/my model.json' --exit-after 5`" in second
        held.open(ADD)
        assert await held.ghost() == "a + b"
        assert len(await said()) == 2


def test_a_client_that_never_tells_its_settings_has_an_engine_all_the_same():
    with home() as place, served(place, "--model", "oracle:/none.json", errors=subprocess.DEVNULL) as process:
        send(process, id=1, method="initialize", params={**HELLO, "initializationOptions": None})
        send(process, method="initialized", params={})
        wait_until(place.answers, "the engine")
