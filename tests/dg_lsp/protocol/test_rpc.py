"""JSON-RPC at its border: texts are whole, positions are numbers."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import CodeActionParams, Position

from dg_lsp.protocol.rpc import converter, parsed

any_text = st.text(st.sampled_from("ab\ud83d\ude0b😋") | st.characters())


@given(st.recursive(any_text, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner), max_leaves=8))
def test_every_text_can_be_encoded(value):
    found = parsed(json.dumps(value).encode())
    json.dumps(found, ensure_ascii=False).encode()


def test_half_a_surrogate_pair_becomes_a_replacement_of_the_same_width():
    assert parsed(b'["a\\ud83db", "\\ud83d\\ude0b", "\\uDE0B"]') == ["a\ufffdb", "😋", "\ufffd"]


@pytest.mark.parametrize(("given", "taken"), [(-3, 0), (0, 0), (7, 7), (2**31, 2**31 - 1), (2**70, 2**31 - 1)])
def test_positions_outside_of_any_text_are_taken(given, taken):
    assert converter().structure({"line": given, "character": given}, Position) == Position(line=taken, character=taken)


@pytest.mark.parametrize("given", [{}, {"line": 0}, {"line": "0", "character": 0}, {"line": 0, "character": 1.5}])
def test_what_is_no_position_is_refused(given):
    with pytest.raises(msgspec.ValidationError):
        converter().structure(given, Position)


def test_the_first_thing_that_is_wrong_is_enough():
    context = {"diagnostics": "a" * 10_000}
    range_ = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    with pytest.raises(TypeError):  # and no group of ten thousand errors
        converter().structure(
            {"textDocument": {"uri": "file:///a.py"}, "range": range_, "context": context}, CodeActionParams
        )
