"""What the commands that edit accept, and what they say to everything else."""

from __future__ import annotations

import pytest
from lsprotocol.types import Position, Range

from dg_lsp.protocol.arguments import FillHereArguments, FixArguments, RewriteArguments, structured

SPAN = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 2}}
AS_RANGE = Range(start=Position(line=0, character=0), end=Position(line=1, character=2))


def test_everything_is_taken():
    given = {"uri": "a", "range": SPAN, "instruction": "shorter", "strength": 1, "n": 3, "keep": [SPAN]}
    found = structured(RewriteArguments, [given | {"draftToken": "t", "announce": True}])
    assert (found.uri, found.range, found.instruction, found.strength) == ("a", AS_RANGE, "shorter", 1)
    assert (found.n, found.keep, found.draft_token, found.announce) == (3, [AS_RANGE], "t", True)
    assert structured(FixArguments, [{"uri": "a"}]).range is None
    assert structured(FixArguments, [{"uri": "a", "range": SPAN, "draftToken": 7}]).draft_token == 7
    assert structured(FillHereArguments, [{"uri": "a", "position": SPAN["end"]}]).position.character == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (None, "one object"),
        ([], "one object"),
        ([1], "one object"),
        ([{"uri": "a", "range": SPAN}, {}], "one object"),
        ([{"uri": "a"}], "range"),
        ([{"uri": 1, "range": SPAN}], "uri"),
        ([{"uri": "a", "range": {"start": 1}}], "range"),
        ([{"uri": "a", "range": SPAN, "colour": "red"}], "colour"),
        ([{"uri": "a", "range": SPAN, "strength": 0}], "strength must be above 0 and up to 1"),
        ([{"uri": "a", "range": SPAN, "strength": "0.5"}], "strength"),
        ([{"uri": "a", "range": SPAN, "n": 99}], "n must be at least 1 and up to 16"),
        ([{"uri": "a", "range": SPAN, "n": True}], "n"),
        ([{"uri": "a", "range": SPAN, "draftToken": [1]}], "draftToken|draft_token"),
    ],
)
def test_anything_else_is_named(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        structured(RewriteArguments, arguments)
