"""The command that downloads a model, when the user asks for it: a process of its own, under a progress bar. An engine
that chooses its model is restarted with it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from lsprotocol.types import MessageType, ShowMessageParams

from dg_lsp.backend.client import EngineFailure
from dg_lsp.backend.connection import started
from dg_lsp.backend.launch import begin_restart
from dg_lsp.backend.resident import Resident
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.params import ExecuteCommandParams
from dg_lsp.protocol.progress import Report
from engine.common.processes import neutral_dir, python_module

_USUAL = "coder-1.5b"
_PROGRESS = re.compile(r"([0-9]{1,3})% (.*)")


async def pull(ls: DgServer, params: ExecuteCommandParams) -> dict[str, Any]:
    """Download the model that the arguments name, else the usual coder; tells the user what became of it."""
    model = _named(params.arguments)
    report = Report()
    told = await ls.working.show(f"Downloading {model}", params.work_done_token, _run(model, report), report)
    if told is None:
        is_well, said = False, f"The download of {model} was stopped; the same command goes on from here."
    else:
        is_well, said = told
    if is_well:
        said = await put_to_use(ls.resident, model)
    kind = MessageType.Info if is_well else MessageType.Warning
    ls.window_show_message(ShowMessageParams(type=kind, message=said))
    return {"done": is_well, "message": said}


def _named(arguments: object) -> str:
    match arguments:
        case [{"model": str(model)}, *_] if model:
            return model
        case _:
            return _USUAL


async def _run(model: str, report: Report) -> tuple[bool, str]:
    """Whether it went well, and a sentence."""
    process = await asyncio.create_subprocess_exec(
        *python_module("dg_lsp"),
        "pull",
        "--",
        model,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        cwd=neutral_dir(),
    )
    said = ""
    try:
        assert process.stderr is not None
        while line := (await process.stderr.readline()).decode(errors="replace").strip():
            if progress := _PROGRESS.fullmatch(line):
                report.tell(progress[2], int(progress[1]))
            else:
                said = line.removeprefix("dg-lsp: ")
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
    if code:
        return False, said or f"The download of {model} ended with exit code {code}."
    return True, ""


async def put_to_use(resident: Resident, model: str) -> str:
    """Restart an engine that chooses its model; returns a sentence about what runs then."""
    resident.client.retry()  # a model that the settings name may have been all that was missing
    try:
        running = await resident.client.status()
        if running.auto:
            await started(begin_restart())
            running = await resident.learn()
        resident.warm()
    except EngineFailure as failure:
        return f"{model} is here, but no engine runs: {failure}"
    if running.model == model:
        return f"{model} is here, and the engine runs it."
    how = "`dg-lsp doctor` says why" if running.auto else f"`dg-lsp engine restart --model {model}` changes that"
    return f"{model} is here. The engine runs {running.model}: {how}."
