"""Prompts that are written for other models."""

from __future__ import annotations

import pytest

from engine.common.request import Snippet
from engine.server.http.fim import Parsed, parsed


@pytest.mark.parametrize(
    "prompt",
    [
        "<|fim_prefix|>a = <|fim_suffix|>\nb<|fim_middle|>",
        "<|fim_suffix|>\nb<|fim_prefix|>a = <|fim_middle|>",
        "<|fim_prefix|><|fim_suffix|>\nb<|fim_middle|>a = ",
        "<fim_prefix>a = <fim_suffix>\nb<fim_middle>",
        "<PRE> a =  <SUF>\nb <MID>",
        "<｜fim▁begin｜>a = <｜fim▁hole｜>\nb<｜fim▁end｜>",
        "[SUFFIX]\nb[PREFIX]a = ",
        "<|code_prefix|>a = <|code_suffix|>\nb<|code_middle|>",
    ],
)
def test_each_dialect_says_the_same(prompt: str):
    assert parsed(prompt) == Parsed(prefix="a = ", suffix="\nb")


@pytest.mark.parametrize("prompt", ["a = ", "", "<|fim_prefix|>a = ", "x = '[PREFIX]'\n", "<PRE> a <SUF>b"])
def test_what_has_not_all_markers_is_before_the_gap(prompt: str):
    assert parsed(prompt) == Parsed(prefix=prompt, suffix="")


def test_other_files_are_snippets_and_the_last_name_is_the_file_of_the_gap():
    for repository, file in (("<|repo_name|>", "<|file_sep|>"), ("<repo_name>", "<file_sep>")):
        prompt = f"{repository}mine\n{file}a.py\nx = 1\n{file}b.rs\n<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"
        assert parsed(prompt) == Parsed(
            prefix="a", suffix="b", path="b.rs", snippets=(Snippet(path="a.py", text="x = 1\n"),)
        )
        assert parsed(f"{file}a.py\nx = 1\n{file}b.rs\nlet ") == Parsed(
            prefix="let ", suffix="", path="b.rs", snippets=(Snippet(path="a.py", text="x = 1\n"),)
        )


def test_what_else_stands_before_the_gap_is_context():
    found = parsed("Context:\n\nx = 1\n<fim_prefix>a<fim_suffix>b<fim_middle>")
    assert found.snippets == (Snippet(path="context", text="Context:\n\nx = 1\n"),)
