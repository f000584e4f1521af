import random
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.learn.canvases import (
    INNER,
    NO_CANVAS,
    WIDTHS,
    Canvases,
    canvas_batch,
    canvas_losses,
    decode_rows,
    first_answer,
    noised,
)
from engine.learn.contexts import GAP, context_losses, filled_rows
from engine.learn.examples import Examples
from engine.learn.packed import PackedCorpus
from engine.learn.training_recipe import NoiseKind
from engine.models.gemma.network import GemmaNetwork
from engine.models.prompts.layout import EOS, MASK, PAD, PREFIX
from tests.engine.learn.test_training import tensors
from tests.engine.learn.tiny import random_network, tiny, toy_corpus

NOISES: list[NoiseKind] = ["absorbing", "uniform"]


def batch(noise: NoiseKind = "absorbing", seed: int = 0, **shares: Any) -> Canvases:
    recipe, rng = replace(tiny(noise), **shares), random.Random(seed)
    examples = Examples(PackedCorpus(toy_corpus(), "train"), recipe, rng)
    return canvas_batch(filled_rows(examples, recipe.rows(96), 96, INNER), recipe, 96, rng)


def canvases(made: Canvases) -> list[tuple[int, torch.Tensor]]:
    """(row, positions of one canvas)."""
    return [
        (row, (made.owner[row] == owner).nonzero()[:, 0])
        for row in range(len(made.canvas))
        for owner in made.owner[row].unique().tolist()
        if owner != NO_CANVAS
    ]


@pytest.mark.parametrize("noise", NOISES)
def test_the_same_seed_gives_the_same_batch(noise: NoiseKind):
    first, again, other = batch(noise), batch(noise), batch(noise, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(tensors(first), tensors(again), strict=True))
    assert not torch.equal(first.truth, other.truth)


@pytest.mark.parametrize("noise", NOISES)
def test_only_the_gap_is_noised_and_the_suffix_stands(noise: NoiseKind):
    seen = 0
    for seed in range(20):
        made = batch(noise, seed, drafted_share=0.0)
        assert torch.equal(made.canvas[~made.queried], made.truth[~made.queried])
        for row, places in canvases(made):
            asked = made.queried[row, places]
            assert asked.any()
            pinned = len(places) - int(asked.nonzero().max()) - 1
            if noise == "uniform":
                assert asked[: len(places) - pinned].all()
                assert pinned <= tiny().pinned
            else:
                assert (made.canvas[row, places][asked] == MASK).all()
            seen += 1
    assert seen > 50


def test_gap_and_suffix_go_on_from_the_context_in_the_text():
    packed = PackedCorpus(toy_corpus(), "train")
    texts = [packed.text(index) for index in range(len(packed))]
    found = 0
    for seed in range(20):
        made = batch(seed=seed)
        for row, places in canvases(made):
            own = made.contexts.example[row] == made.example[row, places[0]]
            start, cut = int(own.nonzero()[0]), int(made.cut[row, places[0]])
            assert made.position[row, places].tolist() == list(range(cut - start, cut - start + len(places)))
            assert set(made.begin[row, places].tolist()) == {cut - start}
            truth = made.truth[row, places].tolist()
            if PAD not in truth and EOS not in truth:
                context = made.contexts.ids[row, start:cut].tolist()
                prefix = packed.tokenizer.decode(context[context.index(PREFIX) + 1 :])
                said = prefix + packed.tokenizer.decode(truth)
                # A gap that is too narrow ends before its text does.
                found += any(said in text for text in texts)
    assert found > 20


def test_unused_slots_are_padding_in_front_of_the_suffix():
    padded = 0
    for seed in range(10):
        made = batch(seed=seed)
        for row, places in canvases(made):
            pads = (made.truth[row, places] == PAD).nonzero()[:, 0].tolist()
            assert pads == list(range(pads[0], pads[0] + len(pads))) if pads else True
            padded += bool(pads)
    assert padded > 20


def widths(**shares: Any) -> tuple[set[int], int]:
    """Widths of gaps that have a whole suffix, and how many of them have unused slots."""
    found: set[int] = set()
    padded = 0
    for seed in range(10):
        made = batch(seed=seed, free_share=0.0, span_share=1.0, **shares)
        for row, places in canvases(made):
            found.add(int((made.blank[row, places] == MASK).sum()))
            padded += bool((made.truth[row, places] == PAD).any())
    return found, padded


def unpadded(**shares: Any) -> set[int]:
    """Widths of those without unused slots: one of up to four tokens can't be narrow, and is as wide as any."""
    batches = (batch(seed=seed, free_share=0.0, span_share=1.0, **shares) for seed in range(10))
    found = [(made, row, places) for made in batches for row, places in canvases(made)]
    full = [each for each in found if PAD not in each[0].truth[each[1], each[2]].tolist()]
    return {int((made.blank[row, places] == MASK).sum()) for made, row, places in full}


def test_a_gap_is_as_wide_as_it_was_drawn():
    roomy, padded = widths(fitting_share=0.0)
    assert roomy <= {*WIDTHS}
    assert padded > 20
    fitting, padded = widths(fitting_share=1.0)
    assert len(fitting) > 20
    assert padded == 0
    narrow, padded = widths(fitting_share=0.0, narrow_share=1.0)
    assert narrow <= {*WIDTHS}
    assert max(unpadded(fitting_share=0.0, narrow_share=1.0)) < max(WIDTHS)
    assert padded < 20, "only gaps of up to four tokens have a slot too many"


def test_noise_levels_span_everything():
    rng = random.Random(0)
    gap = list(range(100, 140))
    for recipe in (replace(tiny(noise), blank_share=0.0) for noise in NOISES):
        drawn = [noised(gap, recipe, rng)[0] for _ in range(300)]
        shares = sorted(sum(a != b for a, b in zip(each, gap, strict=True)) / 40 for each in drawn)
        assert shares[15] < 0.1
        assert 0.4 < shares[150] < 0.6
        assert shares[285] > 0.9


def test_canvases_of_a_row_do_not_see_each_other_nor_what_comes_behind_their_cut():
    network, made = random_network(), batch()
    row, places = canvases(made)[1]
    before = hidden(network, made)[row, places]
    elsewhere = torch.ones_like(made.canvas, dtype=torch.bool)
    elsewhere[row, places] = False
    ids = made.contexts.ids.clone()
    unseen = made.contexts.example[row] != made.example[row, places[0]]
    unseen[int(made.cut[row, places[0]]) :] = True
    ids[row, unseen] = 20
    changed = replace(made, canvas=torch.where(elsewhere, 21, made.canvas), contexts=replace(made.contexts, ids=ids))
    assert torch.equal(hidden(network, changed)[row, places], before)
    inside = made.canvas.clone()
    inside[row, places[-1]] = 21
    assert not torch.equal(hidden(network, replace(made, canvas=inside))[row, places[:1]], before[:1])


def test_some_rows_see_their_own_first_answer():
    network, made = random_network(), batch("uniform")
    with torch.no_grad():
        fed = canvas_losses(network, made)[0]
        logits = network.logits(hidden(network, made)[made.queried])
    blind = torch.nn.functional.cross_entropy(logits, made.truth[made.queried])
    assert made.conditioned == slice(0, 1)
    assert abs(float(fed) - float(blind)) > 1e-4


def test_of_gaps_that_are_fed_an_answer_something_is_known():
    blank: dict[bool, list[bool]] = {True: [], False: []}
    for seed in range(30):
        made = batch(seed=seed, fitting_share=1.0, free_share=0.0, blank_share=1.0)
        for row, places in canvases(made):
            if (made.blank[row, places] == MASK).sum() >= 8:
                fed = row < made.conditioned.stop
                blank[fed].append(torch.equal(made.canvas[row, places], made.blank[row, places]))
    assert sum(blank[True]) < len(blank[True]) / 5
    assert sum(blank[False]) > len(blank[False]) / 4


@torch.no_grad()
def test_what_is_fed_is_the_answer_over_a_blank_canvas_whatever_is_known_of_it():
    network, made = random_network(), batch(drafted_share=0.0)
    store: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    context_losses(network, made.contexts, store)
    canvas, fed = first_answer(network, made, store)
    assert torch.equal(canvas, made.canvas), "nothing is drafted"
    assert fed[made.conditioned].any()
    assert not fed[made.conditioned.stop :].any()
    assert not torch.equal(made.canvas, made.blank)
    assert torch.equal(fed, first_answer(network, replace(made, canvas=made.blank), store)[1])
    assert not torch.equal(fed, first_answer(network, replace(made, blank=made.canvas), store)[1])


@torch.no_grad()
def test_a_first_answer_stands_on_canvases_that_are_asked_whether_it_is_right():
    network, seen = random_network(), {True: 0, False: 0}
    for seed in range(10):
        made = batch(seed=seed, drafted_share=1.0, fitting_share=1.0, free_share=0.0)
        store: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        context_losses(network, made.contexts, store)
        canvas, fed = first_answer(network, made, store)
        said = network.logits(decode_rows(network, replace(made, canvas=made.blank), store, None)).argmax(dim=-1)
        for row, places in canvases(made):
            drafted, checked = made.drafted[row, places], bool(made.checked[row, places].any())
            stands = torch.where(drafted, said[row, places], made.canvas[row, places])
            assert torch.equal(canvas[row, places], stands)
            assert made.queried[row, places][drafted].all()
            if not drafted.any():
                continue
            seen[checked] += 1
            assert row < made.conditioned.stop
            assert torch.equal(made.queried[row, places], made.position[row, places] < _behind(made, row, places))
            assert fed[row, places].any() != checked
            assert not (checked and (~drafted & (made.canvas[row, places] == MASK)).any())
    assert min(seen.values()) > 5


def _behind(made: Canvases, row: int, places: torch.Tensor) -> int:
    """Where in its example begins what is pinned behind a gap."""
    blank = made.blank[row, places] == MASK
    return int(made.position[row, places][blank][-1]) + 1


def test_what_is_served_comes_first_gaps_that_end_a_context_before_those_inside():
    inside = 0
    for seed in range(20):
        made = batch(seed=seed)
        for row in range(len(made.canvas)):
            own = [places for at, places in canvases(made) if at == row]
            ends = [ends_its_context(made, row, places) for places in own]
            assert ends == sorted(ends, reverse=True)
            inside += ends.count(False)
    assert inside > 20


def ends_its_context(made: Canvases, row: int, places: torch.Tensor) -> bool:
    cut = int(made.cut[row, places[0]])
    return bool(made.contexts.kind[row, cut - 1] == GAP)


@torch.no_grad()
def hidden(network: GemmaNetwork, made: Canvases) -> torch.Tensor:
    store: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    context_losses(network, made.contexts, store)
    return decode_rows(network, made, store, None)
