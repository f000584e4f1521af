"""Finds the end of a fill that repeats the beginning of the text after its gap."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile

from engine.common.closers import closes
from engine.common.names import is_name_character
from engine.common.sequences import overlaps
from engine.syntax.lexing import OPENER

_TELLING = 3
"""Characters, one a letter or digit, that a repeated line needs to be no coincidence."""
CLOSES = re.compile(r"(?:end|fi|done|esac)\b[;,)]*")
"""A line that closes a block; code in blocks ends with several such lines."""
_FENCE = re.compile(r"(`|~)\1{2,}")
_HEREDOC = re.compile(r"<<[-~<]?[ \t]*[\"']?(\w+)")
_PAIRS = {"-->": "<!--", "?>": "<?", "%>": "<%", "%}": "{%", "#}": "{#", "}}": "{{", "*/": "/*"}
"""Closers of a piece of one language in another, with their openers; the text outside may be anything."""
_MARKS = re.compile(r"([*_~`$])\1*")
_ENDS_PART = re.compile(r"[\s,;:.!?)\]}]*")
_BLANK_LINES = re.compile(r"(?:[ \t]*+(?:\r\n|\r|\n))++")
_BLANKS = " \t"
_NEAR_CHARS = 16_000
"""Characters on either side of a gap in which brackets are counted where there is no grammar."""
_BRACKET = re.compile(r"[()\[\]{}]")
_STRING = re.compile(r"\"[^\"\n]*+\"|(?<!\w)'[^'\n]*+'(?!\w)")
_ANGLE = re.compile(r"(?<![=-])>")
_ITEM = re.compile(r"[)\]}>] *\w")
_MOST_SWALLOWED = 4
_QUOTE = re.compile(r"(?<!\\)(?:\"|`+|(?<!\w)'|'(?!\w))")


def without_lines(before: str, fill: str, after: str) -> str:
    """A fill without lines, or the rest of a line, that are repeated after it. `before`: the text before the gap."""
    left = fill[: _repeated_lines(before, fill, after)]
    if left != fill or not _BLANK_LINES.match(after):
        return left
    # Blank lines between tell nothing.
    said = fill.rstrip()
    left = said[: _repeated_lines(before, said, _BLANK_LINES.sub("\n", after, count=1))]
    return fill if left == said else left


def repeats_lines(text: str, after: str) -> bool:
    """Whether a text ends with the lines that follow."""
    return without_lines("", text, after) != text


def without_ends(before: str, fill: str, after: str, *, blanks: bool) -> Iterator[str]:
    """A fill without an end that begins the text after the gap; the longest repetition comes first. Which one is right
    is not decided here. `blanks`: whether blanks in between are ignored."""
    indent, said = 0, fill
    if blanks:
        indent, said = len(after) - len(after.lstrip(_BLANKS)), fill.rstrip(_BLANKS)
    for size in overlaps(said, after[indent:]):
        left, end, rest = said[:-size], said[-size:], after[indent + size :]
        if not _is_edge(end, rest):
            continue
        # Underscores may be marks.
        if not _is_edge(before[-1:] + left, end.lstrip("_") and end):
            continue
        # Of the lines that follow no part.
        if "\n" not in end or rest[:1] in ("", "\n", "\r"):
            yield left.rstrip(_BLANKS) if indent else left


def without_end(before: str, fill: str, after: str) -> str:
    """A fill without the end that begins the text after the gap, in a language without a grammar. A bracket or quote is
    removed only if that leaves fewer unpaired; a part of an operator never is."""
    before, after = before[-_NEAR_CHARS:], after[:_NEAR_CHARS]
    fill = without_lines(before, fill, after)
    for left in without_ends(before, fill, after, blanks=True):
        end = fill[len(left) :]
        if not (_BRACKET.search(end) or _QUOTE.search(end)):
            if not _goes_on(before + left, end.lstrip(_BLANKS)):
                return left
        elif _unpaired(before, left, after) < _unpaired(before, fill, after) and _is_paired(before, left, after):
            return left
    return fill


def closes_again(head: str, left: str, end: str) -> bool:
    """Whether the end of a fill begins with the closer of an open piece of one language in another, as in `<?= $a ?>`.
    `head`: the gap's line before it; `left`: the fill without that end."""
    closer = next((each for each in _PAIRS if end.startswith(each)), "")
    return bool(closer) and _is_open(head, closer) and not (closer in left or _PAIRS[closer] in left)


def ends_again(head: str, left: str, end: str, rest: str) -> bool:
    """Whether the end of a fill, in prose, closes marks such as `**bold**`, or is the punctuation of a sentence, and is
    repeated after the gap. `rest`: the text after that repetition."""
    marks = _MARKS.match(end)
    if marks:
        return bool(_ENDS_PART.fullmatch(end, marks.end())) and all(
            _rows(text, marks[0]) % 2 for text in (head, left + end)
        )
    said_before = left[-1:].isalnum() or left[-1:] in tuple("\"'`*_)]}")
    return end in tuple(",;:.!?") and said_before and (rest[:1].isspace() or rest[:1] in ("", *"\"'`*_)]}<"))


def _rows(text: str, marks: str) -> int:
    """The number of marks that stand beside a word as emphasis does; an underscore within a name is none."""
    places = re.finditer(rf"(?<!{re.escape(marks[0])}){re.escape(marks)}(?!{re.escape(marks[0])})", text)
    count = 0
    for place in places:
        left, right = text[: place.start()][-1:], text[place.end() :][:1]
        in_name = marks[0] == "_" and left.isalnum() and right.isalnum()
        count += not in_name and bool((left + right).strip() or not left or not right)
    return count


def _is_open(text: str, closer: str) -> bool:
    return text.rfind(_PAIRS[closer]) > text.rfind(closer)


def swallowed(head: str, fill: str, line: str) -> Iterator[int]:
    """Numbers of closers after the gap that a fill may replace, those that leave fewest unpaired first. Only numbers
    that leave fewer unpaired than replacing none. `head`, `line`: the gap's line before and after it."""
    found: list[tuple[int, int]] = []
    for count in range(1, 1 + min(_MOST_SWALLOWED, len(line))):
        closers, rest = line[:count], line[count:]
        # Strings may stand in strings.
        nested = count > 2 and closes(head, fill, closers)
        if fill != closers and (nested or closes(head, fill, closers, rest)):
            found.append((lonely(head, fill, rest), count))
    least = lonely(head, fill, line) if found else 0
    return iter([count for odd, count in sorted(found) if odd < least])


def closed_after(before: str, fill: str, after: str) -> int:
    """The number of closers after the gap that a fill replaces, in a language without a grammar; 0 if a word follows a
    closer, as in lists and patterns (`a) echo`)."""
    if _ITEM.search(fill):
        return 0
    return next(swallowed(before.rpartition("\n")[2], fill, after.partition("\n")[0]), 0)


def lonely(head: str, fill: str, line: str) -> int:
    """The number of unpaired brackets, quotes, `<` and `>` of a line; the halves of arrows need no partner."""
    text = head + fill + line
    return _unpaired(head, fill, line) + abs(text.count("<") - len(_ANGLE.findall(text)))


def _repeated_lines(before: str, fill: str, after: str) -> int:
    """The beginning of the end of a fill that repeats one or more lines after the gap."""
    first_line_end = line_end(after)
    size = next(overlaps(fill, after), 0)
    start, repeated = len(fill) - size, after[:size]
    if size < first_line_end or CLOSES.fullmatch(repeated.strip()):
        return len(fill)
    telling = len("".join(repeated.split())) >= _TELLING and any(letter.isalnum() for letter in repeated)
    telling = telling or _ends_text(before + fill[:start], repeated)
    return start if telling and _is_edge(before[-1:] + fill[:start], repeated) else len(fill)


def _ends_text(before: str, line: str) -> bool:
    """Whether a line ends an open text: a fence, a here-document, a piece of another language."""
    before, word = before[-_NEAR_CHARS:], line.strip().rstrip(";")
    if _FENCE.fullmatch(word):
        return sum(each.lstrip().startswith(word) for each in before.splitlines()) % 2 == 1
    if word in _PAIRS:
        return _is_open(before, word)
    opened = [match.end() for match in _HEREDOC.finditer(before) if match[1] == word]
    return bool(opened) and word not in map(str.strip, before[opened[-1] :].splitlines())


def line_end(text: str) -> int:
    """Where the first line that is not blank ends."""
    blank = len(text) - len(text.lstrip())
    ends = [end for end in (text.find("\n", blank), text.find("\r", blank)) if end >= 0]
    return min(ends, default=len(text))


def _is_edge(left: str, right: str) -> bool:
    """Whether no name and no number continues from one text to the other."""
    return not (is_name_character(left[-1:]) and is_name_character(right[:1]))


def _goes_on(left: str, end: str) -> bool:
    """Whether an operator or a row of marks begins before an end."""
    marks = "".join(takewhile(lambda character: not (character.isspace() or is_name_character(character)), end))
    return bool(marks) and left[-1:] == marks[0]


def _is_paired(before: str, fill: str, after: str) -> bool:
    """Whether a fill leaves no more unpaired brackets than before; odd text proves nothing."""
    now, then = before + after, before + fill + after
    without = _STRING.sub("", now), _STRING.sub("", then)
    return any(_unpaired("", filled, "") <= _unpaired("", was, "") for was, filled in ((now, then), without))


def _unpaired(before: str, fill: str, after: str) -> int:
    """The number of unpaired brackets, and of unpaired quotes in the gap's line."""
    open_: list[str] = []
    lonely = 0
    for found in _BRACKET.finditer(before + fill + after):
        bracket = found.group()
        if bracket not in OPENER:
            open_.append(bracket)
        elif open_ and open_[-1] == OPENER[bracket]:
            open_.pop()
        else:
            lonely += 1
    line = before[before.rfind("\n") + 1 :] + fill + after[: line_end(after)]
    quotes = Counter(_QUOTE.findall(line))
    return lonely + len(open_) + sum(count % 2 for count in quotes.values())
