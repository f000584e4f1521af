"""The messages that ask for a rewrite, and the part of the answer that replaces the selection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from textwrap import dedent

from engine.common.request import FillRequest
from engine.common.sequences import overlaps
from engine.fill.rewriting.own_code import own_code
from engine.fill.rewriting.removal import removes
from engine.fill.rewriting.surroundings import surroundings

IMPROVE = "Improve this code without changing what it does."
"""The instruction if the user gives none."""
APART = "\n...\n"
"""Stands for lines that are left out."""
_SYSTEM = "You rewrite selected code as you are told, and change nothing else."
_HEARD = "I have read them."
_PROSE = re.compile(
    r"(sure|okay)([!.]\s|, (?!\w+ *:?=))|certainly(?!\w|\s*=)|of course|here( is| are|['’]s)|below (is|are) the "
    r"|i( have|['’]ve) "
    r"|to \w+ (this|the) (code|function)|(hier (ist|sind)|voici|aquí (está|tienes)) |(以下|这)是|当然"
    r"|(the|this|your) (\w+ )?(code|function|method|class|version|lines?) "
    r"(is|are|was|has|of|with|you|that|above|below|can|does)\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(r"\W*(sorry\b[^=]|i'm sorry|i am sorry|i can(no|')t|as an ai\b)", re.IGNORECASE)
_PROSE_LANGUAGES = {
    *("asciidoc", "git-commit", "gitcommit", "latex", "markdown", "mdx", "org", "plaintext", "quarto"),
    *("restructuredtext", "rst", "tex", "text", "typst"),
}
_FENCE = re.compile(r"`{3,}\S*\s*")
_OPENED = re.compile(r"\A(?:\s*`{3,}\S*\n)?\s*")
_OPENING = re.compile(r"^[ \t]*`{3,}([^`\n]*)\n", re.MULTILINE)
_COLONS = (":", "：")
_COMMANDS = {"sh", "bash", "shell", "console", "text", "plaintext", "output"}
"""Tags of fences after prose that usually hold commands about the code, not the code."""
_CLOSERS = re.compile(r"[)\]};,\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A request as messages, and how the answer begins and ends."""

    messages: tuple[dict[str, str], ...]
    old: str
    """The selection as the model sees it: lines, without their common indentation."""
    told: str
    """The surrounding lines that the model sees; may be empty."""
    opening: str
    closing: str
    """The line that ends the answer."""


def conversation(request: FillRequest) -> Conversation:
    """The messages of a rewrite. The file's lines are a turn of their own, or a small model would repeat them. The
    instruction comes last, so that another one for the same selection reads few tokens."""
    indent = indent_of(request)
    old = without_indent(indent + request.old, indent)
    # Markdown may get code.
    least = 4 if request.language == "markdown" else 3
    fence = "`" * max(least, 1 + max((len(run) for run in re.findall("`+", old)), default=0))
    code = f"{fence}{request.language}\n"
    messages = [{"role": "system", "content": _SYSTEM}]
    if told := APART.join(filter(None, surroundings(request))):
        lines = f"Some lines of a {request.language or 'text'} file:\n{code}{told}\n{fence}"
        messages += [{"role": "user", "content": lines}, {"role": "assistant", "content": _HEARD}]
    what = (
        f"The selected code:\n{code}{old}\n{fence}\n\n"
        f"Rewrite the selected code: {request.instruction or IMPROVE}\n"
        "Answer with all of the selected code as it is then, and nothing else."
    )
    if removes(request.instruction):
        what += " If nothing of it is left, leave the block empty."
    messages.append({"role": "user", "content": what})
    return Conversation(messages=tuple(messages), old=old, told=told, opening=code, closing=f"\n{fence}")


def answered(request: FillRequest, said: str, closing: str) -> str | None:
    """The part of an answer that replaces `old`; None: it is no answer. It is empty if removal is requested and the
    model writes nothing. `said` begins after the opening."""
    code_on = without_prose(request, said)
    code = _in_fences(request, code_on, closing)
    if not code.strip():
        return "" if removes(request.instruction) and (code_on == said or code_on.strip()) else None
    if _is_prose(request, code.strip()):
        return None
    indent = indent_of(request)
    lines = _without_surroundings(request, own_code(request, code)).split("\n")
    lines = dedent("\n".join(lines)).split("\n")
    full = (line for line in (indent + request.old).split("\n") if line.strip())
    if {line[0] for line in full if line[0] in " \t"} == {"\t"}:
        lines = _in_tabs(lines)
    return _without_rest_of_lines(request, _as_it_was(request, indent, lines))


def without_prose(request: FillRequest, said: str) -> str:
    """The code of an answer, which may be unfinished. After prose it begins after the opening fence; without one it is
    empty."""
    begun = _OPENED.sub("", said, count=1)
    if request.language in _PROSE_LANGUAGES or _REFUSAL.match(begun) or not _is_prose(request, begun):
        return said
    for fence in _OPENING.finditer(begun):
        tag, code = fence[1].strip().lower(), begun[fence.end() :]
        opens = tag or (begun[: fence.start()].rstrip().endswith(_COLONS) and not code.lstrip().startswith("```"))
        if opens and (tag not in _COMMANDS or tag == request.language):
            return code
    return ""


def is_whole(request: FillRequest, said: str, closing: str) -> bool:
    """Whether an answer has come to its end: a closing line after its code."""
    code = without_prose(request, said)
    head, closed, _ = code.partition(closing)
    return bool(closed) and (code == said or bool(head.strip()))


def _in_fences(request: FillRequest, said: str, closing: str) -> str:
    """The text before the closing line, or before another fence if there is none."""
    lines = f"\n{said}\n".partition(f"{closing}\n")[0].strip("\n").rstrip().split("\n")
    if len(lines) > 1 and _FENCE.fullmatch(lines[0]) and not _FENCE.match(request.old):
        lines = lines[1:]
    fences = sum(_FENCE.fullmatch(line.strip()) is not None for line in lines)
    if fences % 2 and not lines[-1].strip("`"):
        lines = lines[:-1]
    return "\n".join(lines)


def _is_prose(request: FillRequest, code: str) -> bool:
    """Whether an answer is a refusal or speaks about code, unlike the selection."""
    # What stands within a line may be text in code.
    in_line = bool(request.prefix.rpartition("\n")[2].strip())
    told = [_REFUSAL] if in_line or request.language in _PROSE_LANGUAGES else [_REFUSAL, _PROSE]
    return any(each.match(code) and not each.match(request.old.strip()) for each in told)


def says_told(talk: Conversation, said: str) -> bool:
    """Whether an answer, which may be unfinished, begins with a surrounding line instead of the first line of the
    selection."""
    begun = said.strip("\n").partition("\n")[0].strip()
    told = any(line.startswith(begun) for line in _full(talk.told))
    return bool(begun) and told and not talk.old.strip().startswith(begun)


def from_selection(talk: Conversation, said: str) -> str:
    """An unfinished answer from the selection's first line on; empty if it has not come to that."""
    if not says_told(talk, said):
        return said
    lines, first = said.split("\n"), talk.old.strip().partition("\n")[0].rstrip()
    at = next((at for at, line in enumerate(lines) if line.strip() == first), len(lines))
    line = "".join(lines[at : at + 1])
    return without_indent("\n".join(lines[at:]), line[: len(line) - len(line.lstrip(" \t"))])


def shown(request: FillRequest, said: str) -> str:
    """An unfinished answer as it is shown in the selection's place."""
    indent = indent_of(request)
    return with_indent(said, indent).removeprefix(indent)


def indent_of(request: FillRequest) -> str:
    """The indentation of the selection's first line; empty if the selection begins within a line."""
    line = request.prefix[request.prefix.rfind("\n") + 1 :]
    return line if not line.strip() else ""


def without_indent(text: str, indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in text.split("\n"))


def with_indent(text: str, indent: str) -> str:
    return "\n".join(f"{indent}{line}" if line.strip() else line for line in text.split("\n"))


def _without_surroundings(request: FillRequest, code: str) -> str:
    """An answer without surrounding lines that it may repeat."""
    lines, old = code.split("\n"), _full(request.old)
    before, after = _full(request.prefix), _full(request.suffix)
    start = _overlap(before, _full(code))
    if start and old[0] not in _full(code)[:start]:
        lines = lines[_line_of(lines, start) :]
    said = _full("\n".join(lines))
    end = _overlap(said, after)
    if (end and old[-1] not in said[-end:]) or (end := _closers_of_others(request.old, said, after)):
        lines = lines[: _line_of(lines, len(said) - end)]
    return "\n".join(lines).strip("\n") if any(line.strip() for line in lines) else code


def is_around(request: FillRequest, code: str) -> bool:
    """Whether it is nothing but lines before the selection, or lines after it."""
    lines = _full(code)
    around = _overlap(_full(request.prefix), lines), _overlap(lines, _full(request.suffix))
    return bool(lines) and len(lines) in around and not set(lines) & set(_full(request.old))


def _full(text: str) -> list[str]:
    """The lines that are not blank, without their indentation."""
    return [line.strip() for line in text.split("\n") if line.strip()]


def _line_of(lines: list[str], full: int) -> int:
    """The number of the line after so many that are not blank."""
    places = [at for at, line in enumerate(lines) if line.strip()]
    return places[full] if full < len(places) else len(lines)


def _overlap(left: list[str], right: list[str]) -> int:
    """The number of first lines on the right that are the last on the left, if they are too distinct for an
    accident."""
    return next((count for count in overlaps(left, right) if any(len(line) > 3 for line in right[:count])), 0)


def _closers_of_others(old: str, said: list[str], after: list[str]) -> int:
    """The number of last lines that close what was opened before the selection and is closed after it."""
    count = next((at for at, line in enumerate(reversed(said)) if not _CLOSERS.fullmatch(line)), 0)
    for end in overlaps(said[len(said) - count :], after):
        if _balance("\n".join(said[:-end])) == _balance(old):
            return end if _balance("\n".join(said)) != _balance(old) else 0
    return 0


def _balance(text: str) -> int:
    return sum((letter in "([{") - (letter in ")]}") for letter in text)


def _without_rest_of_lines(request: FillRequest, new: str) -> str:
    """An answer without repeats of what stands beside the selection in its first and last line."""
    before = request.prefix[request.prefix.rfind("\n") + 1 :].lstrip()
    after = request.suffix.partition("\n")[0].rstrip()
    starts = [len(before)] if new.startswith(before) and not request.old.startswith(before) else []
    ends = [len(after)] if new.endswith(after) and not request.old.endswith(after) else []
    for start in (*starts, 0):
        for end in (*ends, 0):
            cut = new[start : len(new) - end]
            if (start or end) and cut.strip() and _balance(cut) == _balance(request.old):
                return cut
    return new


def _in_tabs(lines: list[str]) -> list[str]:
    """Lines that are indented by spaces, indented by tabs."""
    widths = [len(line) - len(line.lstrip(" ")) for line in lines]
    unit = min(filter(None, widths), default=1)
    return ["\t" * (width // unit) + line[width // unit * unit :] for width, line in zip(widths, lines, strict=True)]


def _as_it_was(request: FillRequest, indent: str, lines: list[str]) -> str:
    """The answer's lines, indented; lines that equal old ones except for trailing white space are the old ones."""
    old = indent + request.old
    before, seen = old.split("\n"), without_indent(old, indent).split("\n")
    after = with_indent("\n".join(lines), indent).split("\n")
    bare = [line.rstrip() for line in seen], [line.rstrip() for line in lines]
    for block in SequenceMatcher(None, *bare, autojunk=False).get_matching_blocks():
        after[block.b : block.b + block.size] = before[block.a : block.a + block.size]
    return "\n".join(after).removeprefix(indent)
