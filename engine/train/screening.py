"""Which files are worth learning from: written by people, as code, once, and no benchmark."""

from __future__ import annotations

import re
from pathlib import PurePath

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
_SHARED_AT_MOST = 0.6

_COMMENTS_PYTHON = re.compile(r"\A(?:#[^\n]*\n|[ \t]*\n)+")
_COMMENTS_SCRIPT = re.compile(r"\A(?:#![^\n]*\n|//[^\n]*\n|/\*.*?\*/|\s+)+", re.DOTALL)
_LEGAL = re.compile(r"copyright|licen[sc]e|©", re.I)


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
    """Whether a file is a test, an example or a declaration file: good to see, not to see much of."""
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
    """`text` without the comments it opens with, where they are legal notices: thousands of files share one."""
    opening = (_COMMENTS_PYTHON if language == "python" else _COMMENTS_SCRIPT).match(text)
    return text[opening.end() :] if opening and _LEGAL.search(opening.group()) else text


def is_near_copy(own: set[int], seen: set[int]) -> bool:
    """Whether a text with the shingles `own` shares most of them with those that were `seen`."""
    return len(own & seen) > _SHARED_AT_MOST * len(own)


def _is_data(text: str, lines: list[str]) -> bool:
    literal = sum(bool(_LITERAL_LINE.match(line)) for line in lines)
    digits = sum(map(text.count, "0123456789"))
    return literal > _LITERAL_LINES_SHARE * len(lines) or digits > _DIGITS_SHARE * sum(map(len, lines))
