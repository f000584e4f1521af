"""What the commands that edit accept, and what they say to everything else."""

from __future__ import annotations

import pytest
from lsprotocol.types import Position, Range

from dg_lsp.protocol.arguments import FillHereArguments, FixArguments, RewriteArguments, argument

SPAN = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 2}}
AS_RANGE = Range(start=Position(line=0, character=0), end=Position(line=1, character=2))


def test_positions_outside_of_any_text_are_taken():
    above, below = {"line": -3, "character": 2**70}, {"line": 2**31, "character": 0}
    found = argument(RewriteArguments, [{"uri": "a", "range": {"start": above, "end": below}, "keep": [SPAN]}])
    assert (found.range.start.line, found.range.start.character) == (0, 2**31 - 1)
    assert argument(FillHereArguments, [{"uri": "a", "position": below}]).position.line == 2**31 - 1


def test_everything_is_taken():
    given = {"uri": "a", "range": SPAN, "instruction": "shorter", "strength": 1, "n": 3, "keep": [SPAN]}
    found = argument(RewriteArguments, [given | {"draftToken": "t", "announce": True}])
    assert (found.uri, found.range, found.instruction, found.strength) == ("a", AS_RANGE, "shorter", 1)
    assert (found.n, found.keep, found.draft_token, found.announce) == (3, (AS_RANGE,), "t", True)
    assert found.selections == (AS_RANGE,)
    several = argument(RewriteArguments, [{"uri": "a", "ranges": [SPAN, SPAN], "keep": [3, SPAN]}])
    assert (several.selections, several.keep) == ((AS_RANGE, AS_RANGE), (3, AS_RANGE))
    assert argument(FixArguments, [{"uri": "a"}]).range is None
    assert argument(FixArguments, [{"uri": "a", "range": SPAN, "draftToken": 7}]).draft_token == 7
    assert argument(FillHereArguments, [{"uri": "a", "position": SPAN["end"]}]).position.character == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (None, "one object"),
        ([], "one object"),
        ([1], "one object"),
        ([{"uri": "a", "range": SPAN}, {}], "one object"),
        ([{"uri": "a"}], "range"),
        ([{"uri": "a", "range": SPAN, "ranges": [SPAN]}], "either `range` or `ranges`"),
        ([{"uri": "a", "ranges": []}], "either `range` or `ranges`"),
        ([{"uri": "a", "range": SPAN, "keep": ["3"]}], "keep"),
        ([{"uri": "a", "range": SPAN, "keep": [-1]}], "keep"),
        ([{"uri": "a", "range": SPAN, "keep": [2**31 - 1]}], "keep"),
        ([{"uri": 1, "range": SPAN}], "uri"),
        ([{"uri": "a", "range": {"start": 1}}], "range"),
        ([{"uri": "a", "range": {**SPAN, "end": {"line": 0, "character": 1.5}}}], "range.end.character"),
        ([{"uri": "a", "range": SPAN, "colour": "red"}], "colour"),
        ([{"uri": "a", "range": SPAN, "strength": 0}], "`float` > 0.0 - at `..strength"),
        ([{"uri": "a", "range": SPAN, "strength": "0.5"}], "strength"),
        ([{"uri": "a", "range": SPAN, "n": 99}], "`int` <= 16 - at `..n"),
        ([{"uri": "a", "range": SPAN, "n": True}], "got `bool` - at `..n"),
        ([{"uri": "a", "range": SPAN, "draftToken": [1]}], "draftToken"),
    ],
)
def test_anything_else_is_named(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        argument(RewriteArguments, arguments)
