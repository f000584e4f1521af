"""Unused slots stand at the end of their gap, and a row that ran on into the suffix is cut where it says it again."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.common.request import Draft
from engine.fill.canvas import Canvas, new_canvas
from engine.fill.constraints import Bans, in_turn
from engine.fill.denoise import denoise
from engine.fill.sampling import Policies, all_known, entropy_bound, linear_temperature
from engine.fill.slack import MET, SURELY, end_after_text, end_once, met
from engine.models.base import Noise
from engine.models.logits import dense
from tests.engine.tiny import Nowhere

PAD, MASK, VOCABULARY = 0, 1, 12
NOISE = Noise(mask_id=MASK, vocab_size=VOCABULARY)


def canvas(*rows: list[int | None]) -> Canvas:
    return new_canvas([Nowhere()] * len(rows), rows, NOISE, torch.Generator().manual_seed(0))


def permitted(state: Canvas, *chosen: list[int]) -> list[list[bool]]:
    return end_after_text(state, PAD)(torch.tensor(chosen)).tolist()


def left(state: Canvas, count: int) -> torch.Tensor:
    """Of equal logits of the open positions, of which there are `count`."""
    bans, logits = Bans(), torch.zeros(count, VOCABULARY)
    end_once(state, PAD)(bans, dense(logits), state.open.nonzero())
    bans.apply(logits)
    return logits


def test_an_unused_slot_waits_for_the_text_before_it():
    gap = canvas([None, None, None, None, 9, 9])
    assert permitted(gap, [5, PAD, 6, PAD, 0, 0]) == [[True, False, True, False, False, False]]
    gap.ids[0, 0], gap.known[0, 0], gap.open[0, 0] = 5, True, False
    assert permitted(gap, [0, 7, PAD, 6, 0, 0]) == [[False, True, False, True, False, False]]


def test_the_end_of_a_gap_leaves_no_text_behind_it():
    gap = canvas([None, None, None, None, 9, 9])
    gap.ids[0, 0], gap.known[0, 0], gap.open[0, 0] = 5, True, False
    assert permitted(gap, [0, PAD, 6, PAD, 0, 0]) == [[False, False, True, False, False, False]]
    assert permitted(gap, [0, PAD, PAD, PAD, 0, 0]) == [[False, True, True, True, False, False]]


def test_each_of_several_gaps_has_an_end_of_its_own():
    assert permitted(canvas([None, None, 9, None, None]), [PAD, PAD, 0, 5, PAD]) == [[True, True, False, True, False]]


def test_behind_an_unused_slot_all_are():
    gap = canvas([None, None, None, 9, None])
    gap.ids[0, 0], gap.known[0, 0], gap.open[0, 0] = PAD, True, False
    logits = left(gap, 3)
    assert logits[:, PAD].tolist() == [0.0, 0.0, 0.0]
    assert logits[:2, PAD + 1 :].isneginf().all()
    assert not logits[2].any()


def test_no_slot_in_front_of_an_accepted_token_is_unused():
    gap = canvas([None, None, None, 9])
    gap.ids[0, 1], gap.known[0, 1], gap.open[0, 1] = 5, True, False
    logits = left(gap, 2)
    assert logits[:, PAD].tolist() == [-torch.inf, 0.0]
    assert not logits[:, PAD + 1 :].any()


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 6))
def test_whatever_the_model_says_no_unused_slot_is_inside_the_text(seed: int, width: int, steps: int):
    state = canvas([None] * width + [9], [None] * max(1, width - 2) + [9])
    generator = torch.Generator().manual_seed(seed)
    loop = denoise(
        state,
        Policies(
            max_steps=steps,
            temperature=linear_temperature(1, 1, steps),
            greedy_rows=1,
            accept=entropy_bound(0.5, in_time=True),
            settled=all_known,
            constrain=in_turn(end_once(state, PAD)),
            mask=end_after_text(state, PAD),
        ),
        NOISE,
        generator,
        draft=lambda _: Draft(step=0, text=""),
    )
    step = next(loop)
    try:
        while True:
            logits = 3 * torch.randn(int(step.rows.open.sum()), VOCABULARY, generator=generator)
            logits[:, PAD] += 2
            step = loop.send(dense(logits))
    except StopIteration as end:
        settled = end.value
    for row, length in enumerate(settled.lengths):
        ids = [
            token for token, known in zip(settled.row(row), settled.known[row, :length].tolist(), strict=True) if known
        ]
        text = [token for token in ids[:-1] if token != PAD]
        assert ids[: len(text)] == text


def test_a_row_meets_the_suffix_where_it_says_enough_of_it():
    suffix = [*range(50, 70)]
    assert met([5, 6, *suffix[:SURELY], 7, 8], suffix) == 2, "what comes behind may be bent towards what is pinned"
    assert met([5, 6, *suffix[: SURELY - 1], 7], suffix) is None
    assert met([5, *suffix[:MET]], suffix) == 1, "a row ends there"
    assert met([5, *suffix[: MET - 1]], suffix) is None
    assert met(suffix[:SURELY] * 2, suffix) == 0
    assert met([5, 51, 52, 53, 54], [51, 52]) is None, "two tokens are a coincidence"
    assert met([], suffix) is met([5], []) is None
