"""What a rewrite must keep, whatever the model says: names that the rest of the file uses, and spans that the user
keeps."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from engine.common.request import FillRequest
from engine.fill.rewriting.conversation import indent_of, is_around
from engine.fill.rewriting.surroundings import is_import
from engine.syntax.brackets import indentation

_DEFINITION = re.compile(
    r"\b(?:def|class|fn|func|function|struct|enum|trait|interface|type|const|let|var|static)\s+(?:mut\s+)?([^\W\d]\w*)"
)
_PYTHON_DEFINITION = re.compile(r"\bdef\s+(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_PARAMETER = re.compile(r"(?:^|,)\s*\**(\w+)")
_RENAMES = re.compile(r"\brenam(e|es|ed|ing)\b|\bumbenenn", re.IGNORECASE)
_RENAMED = re.compile(r"\b([^\W\d]\w*)[`'\"]?\s+(?:to|as|into|in|zu|->|=>)\s+[`'\"]?([^\W\d]\w*)")
_NAMED = re.compile(r"`([^\W\d]\w*)`|\b(\w*[a-z0-9]_\w+|[A-Z]+_\w+|[a-z]+[A-Z]\w*)\b")
"""Words of an instruction that can only mean code."""
_SET = re.compile(r"^\s*(?:(?:const|let|var|mut)\s+)*([^\W\d]\w*)\s*(?::[^=\n]+)?:?=(?!=)", re.MULTILINE)
_RETURNING = {"python", "go", "javascript", "typescript", "javascriptreact", "typescriptreact", "java", "c", "cpp"}
_COMMENT = re.compile(r"\s*(#(?!\s*(define|include|pragma|undef|el|end|if)|!?\[|[^\W\d]\w*\s*[=;(])|//|--\s)")
"""A comment line in most languages; `#define`, `#[derive]` and `#private = 1` are code."""
_SLASHED_COMMENT = re.compile(r"\s*(//|--\s)")
"""A comment line in languages where `#` begins directives, selectors, headings or private fields."""
_HASH_IS_CODE = {
    *("c", "cpp", "csharp", "css", "fsharp", "html", "java", "javascript", "javascriptreact", "less", "markdown"),
    *("objective-c", "rust", "scss", "swift", "typescript", "typescriptreact"),
}
_OF_COMMENTS = re.compile(r"comment|kommentier|注释", re.IGNORECASE)
_PIECE = re.compile(r"\w+|\s+|[^\w\s]")


def lost_names(request: FillRequest, new: str) -> list[str]:
    """Names that `old` defines, the file uses elsewhere, and `new` lacks; not those that the instruction mentions."""
    rest, code = f"{request.prefix}\n{request.suffix}", _code(request, new)
    defined = dict.fromkeys(_DEFINITION.findall(request.old))
    names = [name for name in defined if _stands_in(name, rest) and not _stands_in(name, code)]
    return [name for name in [*names, *_lost_keywords(request, new, rest)] if not _is_told(name, request)]


def doubts(request: FillRequest, new: str) -> list[str]:
    """Sentences that say why a rewrite is unlikely to be meant, though the file does not forbid it: it renames or
    repeats definitions that other files may use, unsets a variable that later code uses, returns nothing any more, uses
    unknown names, lacks names of the instruction, only talks about code, or repeats lines beside the selection. After a
    requested removal only variables count."""
    code = _code(request, new)
    gone = [name for name in dict.fromkeys(_DEFINITION.findall(request.old)) if not _stands_in(name, code)]
    rest = _rest_of_block(request)
    unset = [
        name
        for name in dict.fromkeys(_SET.findall(request.old))
        if _stands_in(name, rest) and not re.search(rf"\b{name}\b\s*(?:[,:=)\]]|\bin\b)", new)
    ]
    if not new:
        return [f"{name} is no longer set." for name in unset if not _is_told(name, request)]
    may_be_comments = not _code(request, request.old) or _OF_COMMENTS.search(request.instruction)
    returns = _stands_in("return", request.old) and not re.search(r"\b(return|yield|raise|throw)\b|=>", new)
    return [
        *(f"{name} is no longer defined." for name in gone if not _is_told(name, request)),
        *(f"{name} is defined again." for name in _defined_again(request, new)),
        *(f"{name} is no longer set." for name in unset if not _is_told(name, request)),
        *(["Nothing is returned any more."] if returns and request.language in _RETURNING else []),
        *(f"{name} is not defined." for name in _unknown_names(request, new)),
        *(f"{name} is missing." for name in _missing_names(request, new)),
        *(["Only comments are left."] if not code and not may_be_comments else []),
        *(["It says again what stands beside it."] if is_around(request, new) else []),
        *(f"{line.strip()} is new." for line in new.split("\n") if _is_doubtful_import(request, line)),
    ]


def _code(request: FillRequest, text: str) -> str:
    """Lines that are not comments."""
    comment = _SLASHED_COMMENT if request.language in _HASH_IS_CODE else _COMMENT
    return "\n".join(line for line in text.split("\n") if not comment.match(line)).strip()


def _defined_again(request: FillRequest, new: str) -> list[str]:
    before = Counter(_DEFINITION.findall(request.old))
    return [name for name, count in Counter(_DEFINITION.findall(new)).items() if count > max(1, before[name])]


def _is_doubtful_import(request: FillRequest, line: str) -> bool:
    """Whether a line imports something new, in a language in which nothing checks that it exists."""
    return request.language != "python" and is_import(line) and line.strip() not in request.old


def _missing_names(request: FillRequest, new: str) -> list[str]:
    """Names that the instruction introduces or mentions, and `new` lacks."""
    if pairs := _renamed(request):
        return [other for one, other in pairs if _stands_in(one, new) or not _stands_in(other, new)]
    said = dict.fromkeys(one or other for one, other in _NAMED.findall(request.instruction))
    return [name for name in said if not _stands_in(name, new) and not _stands_in(name, request.old)]


def _rest_of_block(request: FillRequest) -> str:
    """The lines after the selection that are indented at least as much."""
    line = request.prefix[request.prefix.rfind("\n") + 1 :] + request.old.partition("\n")[0]
    indent, kept = indentation(line), list[str]()
    for each in request.suffix.split("\n")[1:]:
        if each.strip() and indentation(each) < indent:
            break
        kept.append(each)
    return "\n".join(kept)


def _unknown_names(request: FillRequest, new: str) -> list[str]:
    """Names that Python would not find and that stand nowhere in the file."""
    if request.language != "python":
        return []
    try:
        tree = ast.parse(textwrap.dedent(indent_of(request) + new))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    used, known = dict[str, None](), set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                used[node.id] = None
            else:
                known.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.alias):
            known.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            known.add(node.name)
    file = f"{request.prefix}\n{request.old}\n{request.suffix}"
    return [name for name in used if name not in known and not _stands_in(name, file)]


def _lost_keywords(request: FillRequest, new: str, rest: str) -> list[str]:
    """Parameters that calls elsewhere give by their names."""
    after = {function: _PARAMETER.findall(said) for function, said in _PYTHON_DEFINITION.findall(new)}
    return [
        name
        for function, said in _PYTHON_DEFINITION.findall(request.old)
        for name in _PARAMETER.findall(said)
        if name not in after.get(function, [name])
        and re.search(rf"\b{function}\s*\([^()]*(?:\([^()]*\)[^()]*)*\b{name}\s*=[^=]", rest)
    ]


def _is_told(name: str, request: FillRequest) -> bool:
    """Whether the instruction mentions a name; any name, if it asks for new names without saying which."""
    if _stands_in(name, request.instruction):
        return True
    return bool(_RENAMES.search(request.instruction)) and not _renamed(request)


def _renamed(request: FillRequest) -> list[tuple[str, str]]:
    """The names that the instruction renames."""
    if not _RENAMES.search(request.instruction):
        return []
    return [(one, other) for one, other in _RENAMED.findall(request.instruction) if _stands_in(one, request.old)]


def _stands_in(name: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def kept_alone(request: FillRequest) -> str | None:
    """The kept spans that replace `old` when everything else goes; None if there are none, or if they have lines that
    are indented less than the first."""
    old, indent = request.old, indent_of(request)
    stays = sorted({at for low, high in request.keep for at in range(low, min(high, len(old)))})
    text = "".join(old[at] for at in stays)
    if not text.strip():
        return None if text else ""
    if stays[0] and not text.startswith(indent):
        return None
    # The selection's own end of line follows.
    return text.removeprefix(indent if stays[0] else "").removesuffix("\n" if stays[-1] < len(old) - 1 else "")


def with_kept(old: str, new: str, keep: Sequence[tuple[int, int]]) -> str:
    """`new` without those of its changes that touch a kept span of `old`."""
    if not keep:
        return new
    before, after = _PIECE.findall(old), _PIECE.findall(new)
    pieces, at = list[str](), 0
    for kind, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        was = "".join(before[first:last])
        touched = any(low < at + len(was) and high > at for low, high in keep) or (
            not was and any(low < at < high for low, high in keep)
        )
        pieces.append(was if kind == "equal" or touched else "".join(after[start:end]))
        at += len(was)
    return "".join(pieces)
