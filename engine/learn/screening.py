"""Chooses files that are worth learning from: written by people, as code, each once, and without anything that is
measured on (tasks of benchmarks by their 10-grams, reserved sources by their lines)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path, PurePath

from engine.lab.eval.tasks import read_tasks

LANGUAGES = {
    ".py": "python",
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".mts", ".tsx"), "typescript"),
}
LARGEST_FILE_NBYTES = 200_000

_VENDORED = re.compile(
    r"_?vendor(ed)?|third_?party|_?externs?|_?externals|_bundled|node_modules|bundles?|umd|lib2to3|__pycache__", re.I
)
_BENCHMARKS = re.compile(r"human[-_ ]?eval|mbpp|eval_?plus|swe[-_ ]?bench|live_?code_?bench|big_?code_?bench", re.I)
_GENERATED = re.compile(r"generated (by|from|with|using)|auto-?(matically[ -])?generated|@generated|do not edit", re.I)
_COMPILED = re.compile(
    r"__awaiter|__generator|_interopRequire|__webpack|__toESM|__commonJS|__importDefault|__importStar|__createBinding"
    r"|parcelRequire|System\.register|regeneratorRuntime|_classCallCheck|sourceMappingURL="
)
_HEAD = 2_000
"""Characters at the start of a file where a generator leaves its note."""
_FEWEST_LINES, _FEWEST_CHARACTERS = 5, 120
_LONGEST_LINE, _LONG_LINE, _LONG_LINES_SHARE = 800, 160, 0.05
_LITERAL_LINE = re.compile(r"\s*[\"'\d\[({\-+)}\]]")
_LITERAL_LINES_SHARE, _DIGITS_SHARE = 0.6, 0.2
_COPIED_AT_MOST = 0.6
"""Largest share of a file's shingles that another file may have."""

_COMMENTS_PYTHON = re.compile(r"\A(?:#[^\n]*\n|[ \t]*\n)+")
_COMMENTS_SCRIPT = re.compile(r"\A(?:#![^\n]*\n|//[^\n]*\n|/\*.*?\*/|\s+)+", re.DOTALL)
_LEGAL = re.compile(r"copyright|licen[sc]e|©", re.I)
_WORD = re.compile(r"[^\W\d]\w*")
_GRAM = 10
"""Words in a row; numbers are left out, as ten of them in a row say nothing about a task."""
_SHARED_AT_MOST = 0.2
"""Largest share of a file's shingles that reserved sources may have: single ones are in every code."""


def path_objection(path: PurePath) -> str | None:
    """Why a file is left out without opening it, or None. `path` is relative to its package's root."""
    if any(_VENDORED.fullmatch(part) for part in path.parts):
        return "vendored"
    if _BENCHMARKS.search(str(path)):
        return "benchmark"
    if ".min." in path.name or ".bundle." in path.name:
        return "minified"
    return None


def is_secondary(path: PurePath) -> bool:
    """Whether a file is a test, an example or a declaration file, of which a corpus should not have many."""
    folders = {part.lower() for part in path.parts[:-1]}
    stem = path.name.lower()
    return bool(
        folders & {"test", "tests", "testing", "__tests__", "idle_test", "spec", "examples", "benchmarks"}
        or stem.startswith("test_")
        or stem.endswith(("_test.py", ".test.js", ".spec.js", ".d.ts", ".d.mts", ".d.cts"))
        or stem == "conftest.py"
    )


def text_objection(text: str) -> str | None:
    """Why a text is left out, or None."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < _FEWEST_LINES or len(text) < _FEWEST_CHARACTERS:
        return "too short"
    if "\0" in text or any(len(line) > _LONGEST_LINE for line in lines):
        return "minified"
    if sum(len(line) > _LONG_LINE for line in lines) > _LONG_LINES_SHARE * len(lines):
        return "long lines"
    if _GENERATED.search(text, 0, _HEAD) or _COMPILED.search(text):
        return "generated"
    if _BENCHMARKS.search(text):
        return "benchmark"
    return "data" if _is_data(text, lines) else None


def without_legal_header(text: str, language: str) -> str:
    """`text` without legal notices at its top: thousands of files share one."""
    opening = (_COMMENTS_PYTHON if language == "python" else _COMMENTS_SCRIPT).match(text)
    return text[opening.end() :] if opening and _LEGAL.search(opening.group()) else text


def screened(text: str, language: str, seen: set[int], forbidden: Forbidden | None = None) -> tuple[str, str]:
    """A text as it is learnt from, and why it is left out instead; one of both is empty. Adds to what was `seen` of
    others."""
    if objection := text_objection(text):
        return "", objection
    text = without_legal_header(text, language)
    own = shingles(text)
    if not own:
        return "", "too short"
    if objection := forbidden and forbidden.objection(text, own):
        return "", objection
    if is_near_copy(own, seen):
        return "", "near duplicate"
    seen |= own
    return text, ""


def is_near_copy(own: set[int], seen: set[int]) -> bool:
    """Whether a text with the shingles `own` shares most of them with those that were `seen`."""
    return len(own & seen) > _COPIED_AT_MOST * len(own)


def _is_data(text: str, lines: list[str]) -> bool:
    literal = sum(bool(_LITERAL_LINE.match(line)) for line in lines)
    digits = sum(map(text.count, "0123456789"))
    return literal > _LITERAL_LINES_SHARE * len(lines) or digits > _DIGITS_SHARE * sum(map(len, lines))


def shingles(text: str) -> set[int]:
    """Hashes of three lines in a row, blank lines and indentation aside; only comparable within one process."""
    lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
    return set(map(hash, zip(lines, lines[1:], lines[2:], strict=False)))


class Forbidden:
    """Finds texts that hold a part of a benchmark's task or of reserved sources."""

    def __init__(self, benchmarks: Iterable[str] = (), reserved: Iterable[str] = ()) -> None:
        words = [_words(text) for text in benchmarks]
        self._grams = frozenset(gram for run in words for gram in _grams(run))
        self._vocabulary = frozenset(word for run in words for word in run)
        self._reserved = frozenset(shingle for text in reserved for shingle in shingles(text))

    def objection(self, text: str, own: set[int]) -> str | None:
        """Why `text`, whose shingles are `own`, is left out: "contaminated", "reserved content" or None."""
        # Only words in a row that all occur in benchmarks can be a gram of theirs.
        runs = (list(run) for known, run in groupby(_words(text), self._vocabulary.__contains__) if known)
        if any(not self._grams.isdisjoint(_grams(run)) for run in runs):
            return "contaminated"
        if len(own & self._reserved) > _SHARED_AT_MOST * len(own):
            return "reserved content"
        return None


def benchmark_texts(files: Sequence[Path]) -> list[str]:
    """The whole program and the tests of each task, from files in the format of `dg-lsp eval`. Raises BadInput."""
    tasks = [task for path in files for task in read_tasks(path)]
    tests = {task.check.test for task in tasks if task.check}
    return [*{task.prefix + task.truth + task.suffix for task in tasks}, *tests]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(words: list[str]) -> Iterable[int]:
    return map(hash, zip(*(words[start:] for start in range(_GRAM)), strict=False))
