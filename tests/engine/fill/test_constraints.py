"""What may not enter a gap, on vocabularies of a few tokens."""

import pytest
import torch
from torch import Tensor

from engine.fill.canvas import new_canvas
from engine.fill.constraints import Bans, Constrain, begin_with, forbid, forbid_in, in_turn
from engine.models.base import Noise
from engine.models.logits import dense
from engine.models.vocabulary import Vocabulary
from tests.engine.tiny import Nowhere


def tokens(*spelled: str) -> Vocabulary:
    return Vocabulary([text.encode() for text in spelled])


def left_by(constrain: Constrain, logits: Tensor, places: Tensor) -> Tensor:
    """What is left of logits [F, V], applied to blocks of one token as well as at once."""
    bans = Bans()
    constrain(bans, dense(logits), places)
    whole = logits.clone()
    bans.apply(whole)
    columns = [logits[:, at : at + 1].clone() for at in range(logits.shape[1])]
    for first, column in enumerate(columns):
        bans.apply(column, first)
    assert torch.equal(torch.cat(columns, dim=1), whole)
    return whole


def test_forbidden_tokens_have_no_probability():
    logits = left_by(forbid([1, 3]), torch.zeros(2, 4), torch.tensor([[0, 0], [0, 1]]))
    assert logits.softmax(-1).tolist() == [[0.5, 0, 0.5, 0]] * 2


def test_a_token_is_forbidden_in_the_rows_that_are_named():
    places = torch.tensor([[0, 0], [1, 0], [1, 3], [2, 1]])
    logits = left_by(forbid_in([1], 2), torch.zeros(4, 4), places)
    assert logits[:, 2].isinf().tolist() == [False, True, True, False]
    assert logits[:, [0, 1, 3]].isfinite().all()
    assert left_by(forbid_in([], 2), torch.zeros(4, 4), places).isfinite().all()


def spelled(head: str, letters: Vocabulary, wishes: list[int], *, one_line: bool = False) -> list[str]:
    """The likeliest token of each position of one row, where `wishes` are likeliest without a head."""
    logits = torch.zeros(len(wishes), letters.size)
    logits[range(len(wishes)), wishes] = 5.0
    places = torch.tensor([[0, at] for at in range(len(wishes))])
    chosen = left_by(begin_with(head, letters, one_line=one_line), logits, places).argmax(-1).tolist()
    return [letters.bytes[token].decode() for token in chosen]


def test_a_head_may_be_part_of_a_longer_token():
    assert spelled("con", tokens("con", "config", "x", "c"), [1, 2]) == ["config", "x"]


def test_a_head_may_take_several_tokens():
    assert spelled("con", tokens("c", "on", "o", "n", "x"), [0, 4, 4])[:2] == ["c", "on"]


@pytest.mark.parametrize(("accepted", "left"), [({0: "c"}, {1: "on"}), ({1: "on"}, {0: "c"}), ({0: "c", 1: "on"}, {})])
def test_what_was_accepted_spells_its_part_of_a_head(accepted: dict[int, str], left: dict[int, str]):
    letters = tokens("c", "on", "x", "con")
    noise = Noise(mask_id=2, vocab_size=4)
    canvas = new_canvas([Nowhere()], [[None] * 4], noise, torch.Generator())
    for at, text in accepted.items():
        canvas.ids[0, at] = letters.bytes.index(text.encode())
        canvas.known[0, at], canvas.open[0, at] = True, False
    places = canvas.open.nonzero()
    logits = torch.zeros(len(places), letters.size)
    logits[:, 0] = 1.0
    may = left_by(begin_with("con", letters, accepted=canvas.accepted_token), logits, places)
    for (_, at), row in zip(places.tolist(), may, strict=True):
        if at in left:
            assert [letters.bytes[token].decode() for token in row.isfinite().nonzero()[:, 0].tolist()] == [left[at]]
        else:
            assert row.isfinite().all(), "nothing of the head is left for it"


def test_what_does_not_agree_with_the_head_is_out():
    assert spelled("con", tokens("x", "con", "cat"), [0, 0]) == ["con", "x"]


def test_a_head_that_is_a_line_break_may_stand_where_one_line_is_wanted():
    letters = tokens("x", "\n", "\n\n", "\n  ", "y\nz")
    assert spelled("\n", letters, [2, 2], one_line=True) == ["\n", "x"]
    assert spelled("\n", letters, [3, 4], one_line=True) == ["\n  ", "x"]
    assert spelled("\n", letters, [2, 4]) == ["\n\n", "y\nz"]
    assert spelled("x", letters, [4, 1], one_line=True) == ["x", "x"]


def test_heads_and_bans_combine():
    both = in_turn(forbid([1]), begin_with("ab", tokens("ab", "abc", "z")))
    assert left_by(both, torch.zeros(1, 3), torch.tensor([[0, 0]])).argmax(-1).tolist() == [0]


def test_of_some_positions_their_own_bans_are_left():
    places, logits = torch.tensor([[0, 0], [1, 0], [1, 1]]), torch.zeros(3, 4)
    bans = Bans()
    in_turn(forbid([0]), forbid_in([1], 2), begin_with("ab", tokens("x", "a", "b", "ab")))(bans, dense(logits), places)
    whole = logits.clone()
    bans.apply(whole)
    some = logits[[2, 0]]
    bans[torch.tensor([2, 0])].apply(some)
    assert torch.equal(some, whole[[2, 0]])
