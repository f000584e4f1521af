"""The tasks, read from the text files beside this one.

A file has one task after the other:

    === NAME: INSTRUCTION
    has: REGEX
    lacks: REGEX
    --- file
    the file before, the selection between two markers ▮
    --- answer
    what is right in the place of the selection
    --- test
    code in the same language that fails where the file is wrong

`has` and `lacks`, any number of each, are looked for in what takes the place of the selection; there they tell what a
run can't, and stand in for one where the language can't be run. Instead of `answer` pairs of `was` and `becomes`
say what is replaced in a long selection. NAME begins with the kind of rewrite, up to a dash.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.common.errors import BadInput
from engine.common.marked import gap_at_markers
from engine.common.request import FillRequest
from engine.lab.eval.reserved.packages import Role

LANGUAGES = ("python", "typescript", "rust")
_TASK = re.compile(r"^=== ([\w-]+): (.+)$", re.M)
_SECTION = re.compile(r"^--- (\w+)$", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteTask:
    """`prefix + old + suffix` is the file. `old` is what is rewritten: the selection without its blank ends."""

    name: str
    language: str
    instruction: str
    prefix: str
    old: str
    suffix: str
    answer: str
    """A right text in the place of `old`."""
    has: tuple[str, ...]
    lacks: tuple[str, ...]
    test: str

    @property
    def kind(self) -> str:
        return self.name.partition("/")[2].partition("-")[0]

    def file_with(self, new: str) -> str:
        return self.prefix + new + self.suffix

    def request(self) -> FillRequest:
        return FillRequest(
            task="rewrite",
            prefix=self.prefix,
            old=self.old,
            suffix=self.suffix,
            language=self.language,
            instruction=self.instruction,
        )


@cache
def rewrite_tasks() -> tuple[RewriteTask, ...]:
    """All tasks, in the order of the files."""
    folder = Path(__file__).parent
    return tuple(
        task for language in LANGUAGES for task in parsed((folder / f"{language}.txt").read_text("utf-8"), language)
    )


def tasks_of(role: Role) -> list[RewriteTask]:
    """The tasks of one role: settings are chosen on those for development, the others are only reported. Both halves
    have as many tasks of each language and, as far as possible, of each kind."""
    by_kind: defaultdict[tuple[str, str], list[RewriteTask]] = defaultdict(list)
    for task in rewrite_tasks():
        by_kind[task.language, task.kind].append(task)
    rng = random.Random("rewrites")
    kinds = sorted(by_kind)
    rng.shuffle(kinds)
    # Kinds of one language after another, so that each language is halved as well.
    kinds.sort(key=lambda kind: kind[0])
    mixed = [task for kind in kinds for task in rng.sample(by_kind[kind], len(by_kind[kind]))]
    chosen = {task.name for task in mixed[role == "reported" :: 2]}
    return [task for task in rewrite_tasks() if task.name in chosen]


def parsed(text: str, language: str) -> list[RewriteTask]:
    """The tasks in a file's text. Raises BadInput where it is malformed."""
    _, *parts = _TASK.split(text)
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return [_task(f"{language}/{name}", language, instruction, body) for name, instruction, body in found]


def _task(name: str, language: str, instruction: str, body: str) -> RewriteTask:
    patterns, *sections = _sections(body)
    by_name = dict(sections)
    if not {"file", "test"} <= by_name.keys():
        raise BadInput(f"The rewrite {name} has no file or no test.")
    marked = gap_at_markers(by_name["file"])
    old = marked.old.strip()
    lead = len(marked.old) - len(marked.old.lstrip())
    answer = by_name["answer"] if "answer" in by_name else _changed(name, marked.old, sections)
    return RewriteTask(
        name=name,
        language=language,
        instruction=instruction,
        prefix=marked.prefix + marked.old[:lead],
        old=old,
        suffix=marked.old[lead + len(old) :] + marked.suffix,
        answer=answer.strip(),
        has=tuple(_patterns("has", patterns[1])),
        lacks=tuple(_patterns("lacks", patterns[1])),
        test=by_name["test"],
    )


def _sections(body: str) -> list[tuple[str, str]]:
    """The sections of a text by name, without their last line break; what stands before the first one has an empty
    name."""
    first, *parts = _SECTION.split(body)
    named = zip(parts[::2], parts[1::2], strict=True)
    return [("", first), *((name, text.removeprefix("\n").removesuffix("\n")) for name, text in named)]


def _patterns(kind: str, text: str) -> Iterator[str]:
    return (line.removeprefix(f"{kind}: ") for line in text.splitlines() if line.startswith(f"{kind}: "))


def _changed(name: str, old: str, sections: Sequence[tuple[str, str]]) -> str:
    was = [text for kind, text in sections if kind == "was"]
    becomes = [text for kind, text in sections if kind == "becomes"]
    if not was or len(was) != len(becomes) or any(old.count(each) != 1 for each in was):
        raise BadInput(f"The rewrite {name} has no answer that can be told from its file.")
    for before, after in zip(was, becomes, strict=True):
        old = old.replace(before, after)
    return old
