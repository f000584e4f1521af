"""What a run says of the rewrites: by row, in the same words for people and programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from textwrap import dedent
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from dg_lsp.cli import run
from engine.lab.eval.rewrites.rewrite_evaluation import Rewriter, Rewritten, by_model, by_peer, evaluate, report, table
from engine.lab.eval.rewrites.rewrite_tasks import RewriteTask, tasks_of
from engine.lab.peer.client import PeerAnswer
from engine.models.oracle.model import Case, Oracle

TASKS = [task for task in tasks_of("development") if task.language == "python"][:3]


def saying(text_of: Callable[[RewriteTask], str], outside: int = 0, ms: float = 10.0) -> Rewriter:
    return lambda task: Rewritten(text=text_of(task), ms=ms, forwards=4, outside=outside)


def test_right_wrong_and_silent_are_told_apart() -> None:
    done: list[int] = []
    rewriters = {
        "right": saying(lambda task: task.answer),
        "same": saying(lambda task: task.old, outside=2),
        "silent": saying(lambda task: ""),
    }
    results = evaluate(rewriters, TASKS, lambda: done.append(1))
    rows = report({"model": "m"}, results)["rows"]
    assert [rows[row]["right"] for row in rewriters] == [3, 0, 0]
    assert [rows[row]["silent"] for row in rewriters] == [0, 0, 3]
    assert [rows[row]["outside"] for row in rewriters] == [0, 6, 0]
    assert rows["right"]["p50_ms"] == 10.0
    assert rows["right"]["forwards"] == 4.0
    assert len(done) == 9
    shown = StringIO()
    Console(file=shown, width=150).print(table("T", results))
    assert "100.0%" in shown.getvalue()
    assert "3 of 3" in shown.getvalue()


def test_a_model_is_asked_as_editors_ask_it() -> None:
    task = TASKS[0]
    model = Oracle("oracle", [Case(text=f"{task.prefix}▮{task.answer}▮{task.suffix}")])
    made = by_model(model, task)
    assert made.text == task.answer
    assert made.forwards > 0


@pytest.mark.parametrize("more", [["--holes", "."], ["--out", "."], ["--all"]])
def test_rewrites_go_with_no_gaps(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "--rewrites", "development", *more]) == 2
    assert "--rewrites can only be combined with" in capsys.readouterr().err


def test_llama_cpp_is_told_the_same_and_its_answer_is_taken_in_the_same_way() -> None:
    task = TASKS[0]
    heard: list[Any] = []

    def chat(messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> PeerAnswer:
        heard.append(messages[-1]["content"])
        text = f"Sure!\n```python\n{dedent('    ' + task.answer)}\n```\nDone."
        return PeerAnswer(text=text, tokens=20, prompt_tokens=1, ended=True, ms=40.0)

    beside = cast(Any, SimpleNamespace(peer=SimpleNamespace(chat=chat)))
    made = by_peer(beside, task)
    assert task.instruction in heard[0]
    assert made.text == task.answer
    assert (made.ms, made.forwards) == (40.0, 20)


def test_times_are_held_against_llama_cpps_task_by_task() -> None:
    rewriters = {"dg-lsp": saying(lambda task: task.answer), "llama.cpp": saying(lambda task: task.answer, ms=40.0)}
    results = evaluate(rewriters, TASKS)
    assert report({}, results)["time_ratio"] == {"all": 0.25, "long": None}
    assert report({}, evaluate({"dg-lsp": rewriters["dg-lsp"]}, TASKS))["time_ratio"]["all"] is None


def test_an_unknown_row_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "--rewrites", "development", "--row", "adaptive"]) == 2
    assert "name dg-lsp or llama.cpp" in capsys.readouterr().err


def test_the_command_answers_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "--rewrites", "development", "--limit", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["tasks"] == "development rewrites"
    assert said["rows"]["dg-lsp"]["tasks"] == 2
