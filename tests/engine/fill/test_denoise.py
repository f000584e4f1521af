"""The loop: equal to the published one without pins, and what pins, stops and noise promise."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.common.request import Draft
from engine.fill.canvas import new_canvas
from engine.fill.constraints import forbid
from engine.fill.denoise import denoise
from engine.fill.sampling import doubtful, published_policies
from engine.models.base import Noise, Sampling
from engine.models.logits import dense
from tests.engine.tiny import Nowhere, settle, states, tiny_model

PINNED = 260
"""A token of the tiny vocabulary that random canvases rarely hold."""


@pytest.fixture(scope="module")
def model(released: Path):
    return tiny_model(released)


@pytest.fixture(scope="module")
def reference(released: Path):
    """The released class with the same weights."""
    from transformers import DiffusionGemmaForBlockDiffusion

    module = DiffusionGemmaForBlockDiffusion.from_pretrained(released, dtype=torch.float32).eval()
    module.generation_config.eos_token_id = None
    return module


def unconstrained(bans, logits, places):
    pass


def draw_as_published(weights, before, generator):
    """Ours draws from the same distributions by other random numbers: see test_distributions."""
    assert before is None, "a tiny vocabulary is one block"
    return torch.multinomial(weights / weights.sum(dim=-1, keepdim=True), num_samples=1, generator=generator)[:, 0]


@pytest.mark.parametrize("entropy_bound", [0.1, 20.0], ids=["one token a step", "many tokens a step"])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("stability", "confidence"), [(1, 1.0), (0, 100.0), (1, 100.0), (2, 100.0)])
def test_without_pins_it_answers_what_generate_answers(
    model, reference, entropy_bound: float, seed: int, stability: int, confidence: float
):
    from transformers.models.diffusion_gemma.generation_diffusion_gemma import EntropyBoundSamplerConfig

    sampling = Sampling(
        max_steps=7,
        t_min=0.4,
        t_max=0.8,
        entropy_bound=entropy_bound,
        stability_threshold=stability,
        confidence_threshold=confidence,
    )
    prompt = torch.randint(9, 250, (1, 30), generator=torch.Generator().manual_seed(seed))
    torch.manual_seed(seed)
    expected = reference.generate(
        prompt,
        max_new_tokens=3 * 32,
        max_denoising_steps=sampling.max_steps,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound),
        t_min=sampling.t_min,
        t_max=sampling.t_max,
        stability_threshold=stability,
        confidence_threshold=sampling.confidence_threshold,
        eos_token_id=[10_000],  # none: the model's own end would be padded
    ).sequences[0, 30:]

    torch.manual_seed(seed)
    generator = torch.default_generator
    ids = prompt[0].tolist()
    for _ in range(3):
        canvas = new_canvas([model.encode(ids)], [[None] * 32], model.info.noise, generator)
        policies = published_policies(sampling, model.info.noise, unconstrained)
        policies = replace(policies, draw=draw_as_published)
        ids += settle(model, canvas, policies, generator).row(0)

    assert ids[30:] == expected.tolist()


@pytest.mark.parametrize("mask_id", [None, 3], ids=["uniform", "absorbing"])
def test_pinned_tokens_never_change(model, mask_id: int | None):
    model = with_noise(model, mask_id)
    generator = torch.Generator().manual_seed(0)
    rows = [[None, PINNED, None, None, PINNED, PINNED], [PINNED, None, PINNED]]
    canvas = new_canvas([model.encode([2, 20, 21])] * 2, rows, model.info.noise, generator)
    pinned = canvas.pinned.clone()
    for state in states(model, canvas, policies_of(model), generator):
        assert (state.ids[pinned] == state.best[pinned]).all()
        assert (state.best[0, [1, 4, 5]] == PINNED).all()
        assert (state.best[1, [0, 2]] == PINNED).all()
        assert not state.open[pinned].any()


@pytest.mark.parametrize("mask_id", [None, 3], ids=["uniform", "absorbing"])
def test_forbidden_tokens_stay_out(model, mask_id: int | None):
    model = with_noise(model, mask_id)
    generator = torch.Generator().manual_seed(1)
    allowed = range(40, 44)
    banned = [token for token in range(model.info.noise.vocab_size) if token not in allowed]
    canvas = new_canvas([model.encode([2, 20])], [[None] * 8], model.info.noise, generator)
    settle(model, canvas, policies_of(model, forbid(banned)), generator)
    assert set(canvas.row(0)) <= set(allowed)


def test_absorbing_noise_leaves_no_mask_and_keeps_what_it_accepted(model):
    model = with_noise(model, 3)
    generator = torch.Generator().manual_seed(2)
    canvas = new_canvas([model.encode([2, 20])], [[None] * 12], model.info.noise, generator)
    before = canvas.ids.clone()
    for state in states(model, canvas, policies_of(model, forbid([3])), generator):
        revealed = before != 3
        assert (state.ids[revealed] == before[revealed]).all()
        before = state.ids.clone()
    assert 3 not in canvas.row(0)
    assert canvas.known.all()


def test_a_stop_flag_ends_after_the_step_under_way(model):
    generator = torch.Generator().manual_seed(0)
    canvas = new_canvas([model.encode([2, 20])], [[None] * 8], model.info.noise, generator)
    settle(model, canvas, policies_of(model), generator, should_stop=lambda: canvas.step == 2)
    assert canvas.step == 2
    assert len(canvas.row(0)) == 8


def never(look):
    return torch.zeros(look.known.shape[0], dtype=torch.bool)


def test_the_step_cap_holds(model):
    generator = torch.Generator().manual_seed(0)
    canvas = new_canvas([model.encode([2, 20])], [[None] * 8], model.info.noise, generator)
    policies = policies_of(model)
    settle(model, canvas, type(policies)(**{**fields(policies), "settled": never, "max_steps": 5}), generator)
    assert canvas.step == 5


def test_the_stop_looks_at_free_positions_alone(model):
    """A canvas that is pinned but for one sure token is done at once, whatever the entropy of its pins would be."""
    generator = torch.Generator().manual_seed(0)
    only = [token for token in range(model.info.noise.vocab_size) if token != 50]
    canvas = new_canvas([model.encode([2, 20])], [[PINNED] * 20 + [None] + [PINNED] * 9], model.info.noise, generator)
    settle(model, canvas, policies_of(model, forbid(only)), generator)
    assert canvas.step == 2, "one step to see the token, one to see it stay"
    assert canvas.row(0)[20] == 50


def test_rows_that_are_done_take_no_further_part(model):
    model = with_noise(model, 3)
    generator = torch.Generator().manual_seed(0)
    rows = [[None], [None] * 20]
    canvas = new_canvas([model.encode([2, 20])] * 2, rows, model.info.noise, generator)
    for state in states(model, canvas, policies_of(model), generator):
        if state.step == 2:
            assert not state.open[0].any()
            assert state.open[1].any()
            return
    pytest.fail("the loop ended before its second step")


def policies_of(model, constrain=unconstrained):
    return published_policies(model.info.sampling, model.info.noise, constrain)


def with_noise(model, mask_id: int | None):
    import copy
    import dataclasses

    twin = copy.copy(model)
    twin.info = dataclasses.replace(model.info, noise=Noise(mask_id=mask_id, vocab_size=model.info.noise.vocab_size))
    return twin


def fields(policies) -> dict:
    return {name: getattr(policies, name) for name in type(policies).__slots__}


ONE_A_STEP = Sampling(
    max_steps=4,
    t_min=1.0,
    t_max=1.0,
    entropy_bound=0.0,
    stability_threshold=0,
    confidence_threshold=0.0,
)


def test_what_was_accepted_doubtfully_is_guessed_again_when_more_is_known():
    """Two masks, one accepted a step: the first was a guess, and is asked for once more behind the second."""
    noise, generator = Noise(mask_id=9, vocab_size=10), torch.Generator()
    canvas = new_canvas([Nowhere()], [[None, None]], noise, generator)
    policies = replace(published_policies(ONE_A_STEP, noise, unconstrained, greedy_rows=1), remask=doubtful(0.9))
    loop = denoise(canvas, policies, noise, generator, draft=lambda state: Draft(step=state.step, text=""))

    def surely(token: int, logit: float) -> torch.Tensor:
        return torch.nn.functional.one_hot(torch.tensor([token]), 10).float() * logit

    assert next(loop).rows.canvas.tolist() == [[9, 9]]
    step = loop.send(dense(torch.cat((surely(3, 3.0), surely(4, 1.0)))))
    assert step.rows.canvas.tolist() == [[3, 9]]
    step = loop.send(dense(surely(4, 20.0)))
    assert step.rows.canvas.tolist() == [[9, 4]]
    assert step.rows.open.tolist() == [[True, False]]
    with pytest.raises(StopIteration):
        loop.send(dense(surely(5, 20.0)))
    assert canvas.row(0) == [5, 4]


def test_a_row_that_is_settled_stays_so_while_others_are_not():
    noise, generator = Noise(mask_id=9, vocab_size=10), torch.Generator()
    canvas = new_canvas([Nowhere()] * 2, [[None], [None, None, None]], noise, generator)
    policies = replace(published_policies(ONE_A_STEP, noise, unconstrained, greedy_rows=2), remask=doubtful(0.9))
    loop = denoise(canvas, policies, noise, generator, draft=lambda state: Draft(step=state.step, text=""))
    said = torch.nn.functional.one_hot(torch.tensor([3, 4, 5, 6]), 10).float() * torch.tensor([[1.0], [20], [20], [20]])
    step = next(loop)
    assert [row.sum().item() for row in step.rows.open] == [1, 3]
    step = loop.send(dense(said))
    while True:
        assert len(step.rows.lengths) == 1, "the first row is settled, however doubtful it is"
        places = int(step.rows.open.sum())
        try:
            step = loop.send(dense(said[-places:]))
        except StopIteration:
            break
    assert canvas.row(0)[:1] == [3]


def test_no_step_is_taken_once_every_token_is_sure():
    """The entropy bound would take one of them a step."""
    noise, generator = Noise(mask_id=9, vocab_size=10), torch.Generator()
    said = torch.nn.functional.one_hot(torch.tensor([3, 4, 5]), 10).float()
    for sure, steps in ((0.9, 1), (2.0, 3)):
        canvas = new_canvas([Nowhere()], [[None, None, None]], noise, generator)
        policies = published_policies(replace(ONE_A_STEP, sure=sure), noise, unconstrained, greedy_rows=1)
        loop = denoise(canvas, policies, noise, generator, draft=lambda state: Draft(step=state.step, text=""))
        step = next(loop)
        with suppress(StopIteration):
            while True:
                step = loop.send(dense(said[step.rows.open[0].nonzero()[:, 0]] * 6.0))
        assert (canvas.row(0), canvas.step) == ([3, 4, 5], steps)
