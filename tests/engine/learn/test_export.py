import dataclasses
import json
import math
import random
import shutil
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from msgspec.structs import replace
from transformers import DiffusionGemmaForBlockDiffusion

from engine.common.request import FillRequest, RecentEdit
from engine.fill.causal_decoding import Reach, decode
from engine.fill.draft_sources import DraftSources
from engine.fill.draft_tree import Following, TokenDraft, of_drafts
from engine.fill.gap_opening import open_gap
from engine.fill.greedy import Said
from engine.fill.lengths.strategies import PREDICTED
from engine.fill.loading import load
from engine.fill.pipeline import fill
from engine.lab.baselines.left_to_right import fill_by_causal_head, gap_tokens
from engine.learn.contexts import ContextRow, Contexts, attend_within, contexts
from engine.learn.examples import Example
from engine.learn.export import export, keep_threshold, loss_table
from engine.learn.state import Point, TrainingState, open_state
from engine.learn.training import train
from engine.models.base import Rows
from engine.models.checkpoints.catalog import find
from engine.models.gemma.model import DiffusionGemma
from engine.models.gemma.network import GemmaNetwork
from engine.models.prompts.layout import EDIT, END, PREFIX, RESERVED, SUFFIX, TO, WIDTHS
from tests.engine.formats import choose
from tests.engine.learn.tiny import CPU, encode_rows, tiny, toy_corpus
from tests.engine.toys.language import toy_program


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingState, Path]:
    folder = tmp_path_factory.mktemp("export")
    state = train(tiny(steps=4), toy_corpus(), folder / "run", 0, CPU, lambda line: None)
    export(state, tiny(), toy_corpus() / "tokenizer", folder / "model", "slack")
    return state, folder / "model"


def rounded(state: TrainingState) -> GemmaNetwork:
    """Our pass over the very weights that were written."""
    network = GemmaNetwork(state.module)
    with torch.no_grad():
        for parameter in state.module.parameters():
            parameter.copy_(parameter.bfloat16())
    return network


@torch.no_grad()
def test_what_is_exported_gives_equal_logits_in_the_published_class(trained: tuple[TrainingState, Path]):
    state, folder = trained
    reference: Any = DiffusionGemmaForBlockDiffusion.from_pretrained(folder, dtype=torch.float32).eval()
    network = rounded(state)
    generator = torch.Generator().manual_seed(0)
    # Longer than the sliding window of 24.
    ids = torch.randint(16, 300, (2, 40), generator=generator)
    canvas = torch.randint(16, 300, (2, 12), generator=generator)
    told = torch.randn(2, 12, 300, generator=generator)
    store: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    encode_rows(network, ids, store)

    def attend(index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        keys, values = store[index]
        seen = network.config.sliding_window - 1 if network.sliding(index) else 40
        keys, values = keys[:, :, -seen:], values[:, :, -seen:]
        return network.attention(query, torch.cat((keys, key), 2), torch.cat((values, value), 2))

    signal = network.soft_embeddings(told)
    positions = torch.arange(40, 52).expand(2, -1)
    ours = network.logits(network.decode(canvas, positions, attend, signal))
    theirs = reference(input_ids=ids, decoder_input_ids=canvas, self_conditioning_logits=told).logits
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_the_engine_reads_what_the_recipe_knows(trained: tuple[TrainingState, Path]):
    facts = load(str(trained[1]), "cpu").model.info
    assert (facts.length, facts.noise.mask_id, facts.noise.vocab_size) == ("slack", 3, 300)
    assert (facts.context_limit, facts.canvas_length, facts.widths) == (96, 96, (8, 24, 64))
    assert (facts.sampling.max_steps, facts.sampling.sure) == (16, 2.0)
    assert (facts.sampling.entropy_bound, facts.pad_id) == (0.25, 0)
    assert not facts.instructions


def test_the_engine_reads_how_sure_it_has_to_be(trained: tuple[TrainingState, Path], tmp_path: Path):
    out = shutil.copytree(trained[1], tmp_path / "model")
    assert load(str(out), "cpu").model.info.threshold is None
    keep_threshold(out, 0.25)
    assert load(str(out), "cpu").model.info.threshold == 0.25


def test_weights_are_stored_once_in_bfloat16(trained: tuple[TrainingState, Path]):
    state, folder = trained
    checkpoint = find(str(folder))
    assert {tensor.dtype for tensor in checkpoint.tensors} == {"BF16"}
    # Twice would be four bytes each; headers and the stand-in vision tower take the rest.
    assert checkpoint.nbytes < 3.2 * sum(p.numel() for p in state.module.model.decoder.parameters())
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"


def test_a_run_can_start_from_an_export(trained: tuple[TrainingState, Path], tmp_path: Path):
    state, folder = trained
    begun = open_state(tiny(), tmp_path, 7, torch.device("cpu"), folder)
    assert (begun.step, begun.tokens) == (state.step, state.tokens)
    table = state.module.lm_head.weight.bfloat16()
    assert torch.equal(begun.module.lm_head.weight.bfloat16(), table)
    assert not torch.equal(open_state(tiny(), tmp_path, 7, torch.device("cpu")).module.lm_head.weight.bfloat16(), table)


def test_the_card_tells_how_losses_fell():
    points = [
        Point(step=i, tokens=i * 1000, split=split, losses={"next_token": 8.0 - i / 10})
        for i in range(1, 31)
        for split in ("train", "held-out")
    ]
    points[-1].losses.update(canvas=4.5, gap=3.0, width=4.1, end=0.6)
    rows = loss_table(points).splitlines()[2:]
    assert len(rows) == 15
    assert (rows[0], rows[-1]) == (
        "| 2,000 | - | 7.80 | - | - | - |",
        "| 30,000 | 4.50 | 5.00 | 3.00 | 4.10 | 0.60 |",
    )
    assert loss_table([]).count("\n") == 1


@pytest.fixture(scope="module")
def asked(trained: tuple[TrainingState, Path], tmp_path_factory: pytest.TempPathFactory) -> DiffusionGemma:
    """The same weights, asked for widths, in float32 as they were trained."""
    folder = tmp_path_factory.mktemp("predicted")
    export(trained[0], dataclasses.replace(tiny(), edit_share=0.1), toy_corpus() / "tokenizer", folder, "predicted")
    with pytest.MonkeyPatch.context() as patch:
        choose(patch)
        model = load(str(folder), "cpu").model
    assert isinstance(model, DiffusionGemma)
    model.network.module.float()
    return model


PROGRAM = toy_program(random.Random(4))
REQUEST = FillRequest(prefix=PROGRAM[:60], suffix=PROGRAM[71:], language="python", n=2)


def trained_on(model: DiffusionGemma, gap: Sequence[int]) -> tuple[Contexts, int]:
    """The prompt with `gap` behind it as a row of training, and where it is asked how wide the gap is."""
    prompt = model.prompt(REQUEST)
    row = ContextRow(tiny().pinned)
    row.add(Example(context=[*prompt.context], gap=[*gap], after=[*prompt.suffix], inner=[]))
    return contexts([row], len(row.tokens)), len(prompt.context) + 1 + len(prompt.suffix)


def test_a_prompt_is_laid_out_as_it_was_trained(asked: DiffusionGemma):
    prompt = asked.prompt(REQUEST)
    suffix = asked.tokenize(PROGRAM[71:])
    room = int(asked.info.context_limit * 0.2)
    later = prompt.context[prompt.context.index(SUFFIX) + 1 : prompt.context.index(PREFIX)]
    assert [*later] == suffix[:room]
    assert [*prompt.suffix] == suffix[: tiny().pinned]
    assert asked.detokenize(prompt.context[prompt.context.index(PREFIX) + 1 :]) == PROGRAM[:60]


def test_recent_edits_are_laid_out_as_they_were_trained(asked: DiffusionGemma):
    long = RecentEdit(path="a.py", old="", new=PROGRAM)
    pairs = [("a = 1", "b = 1"), ("", "c = 2"), ("d = 3", "")]
    short = [RecentEdit(path="a.py", old=old, new=new) for old, new in pairs]
    tokens = [(asked.tokenize(old), asked.tokenize(new)) for old, new in pairs]
    laid_out = [each for old, new in tokens for each in (EDIT, *old, TO, *new)]
    request, limit = replace(REQUEST, edits=(*short, long)), 10 * len(laid_out)
    context = cast(Any, asked).prompt(request, limit).context
    assert [*context[context.index(EDIT) : context.index(SUFFIX)]] == laid_out
    tighter = cast(Any, asked).prompt(request, limit - 1).context
    assert [*tighter[tighter.index(EDIT) : tighter.index(SUFFIX)]] == laid_out[2 + sum(map(len, tokens[0])) :]
    assert len(context) <= limit
    assert EDIT not in asked.prompt(REQUEST).context


def test_weights_that_have_learnt_no_edits_are_told_of_none():
    edit = RecentEdit(path="a.py", old="a = 1", new="b = 1")
    model = load(str(Path(__file__).parents[2] / "models" / "toy-absorbing")).model
    assert model.prompt(replace(REQUEST, edits=(edit,))) == model.prompt(REQUEST)


@torch.no_grad()
def test_widths_are_asked_for_as_they_were_trained(asked: DiffusionGemma):
    batch, question = trained_on(asked, asked.tokenize("b + 3"))
    hidden = asked.network.encode(batch.ids, batch.position, attend_within(asked.network, batch))
    answers = asked.network.logits(hidden[0, question])[RESERVED : RESERVED + len(WIDTHS)].softmax(dim=-1)
    told = asked.widths(asked.encode(asked.prompt(REQUEST).context), asked.prompt(REQUEST).suffix)
    assert list(told) == list(WIDTHS)
    assert torch.allclose(torch.tensor(list(told.values())), answers, atol=1e-5)


@torch.no_grad()
def test_a_gap_is_scored_with_its_end_as_it_was_trained(asked: DiffusionGemma):
    gap = asked.tokenize("b + 3")
    batch, question = trained_on(asked, gap)
    hidden = asked.network.encode(batch.ids, batch.position, attend_within(asked.network, batch))
    said = asked.network.logits(hidden[0]).log_softmax(dim=-1)
    wanted = [float(said[question + 1 + at, token]) for at, token in enumerate([*gap, END])]
    prompt = asked.prompt(REQUEST)
    scores = asked.score(asked.encode(prompt.context), [gap], prompt.suffix)
    assert scores[0] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("begun", [0, 2])
@pytest.mark.parametrize("right", [0, 1, 3, 9])
def test_a_gap_is_written_alike_whatever_is_guessed(asked: DiffusionGemma, begun: int, right: int):
    """Each pass tells one token more than is guessed rightly."""
    asked.forget()
    gap = open_gap(asked, REQUEST)
    written = [*islice(gap_tokens(gap, ()), 12)]
    wanted, said, passes = written, Said(ids=written[:begun]), 0
    wrong = next(token for token in range(RESERVED, 999) if token not in written)

    class Guesses(DraftSources):
        def after(self, said: Sequence[int]) -> Following:
            nonlocal passes
            passes += 1
            return of_drafts([TokenDraft(ids=[*wanted[len(said) :][:right], *[wrong] * (4 - right)], likely=0.95)])

    reach = Reach(most=len(written), banned=[END])
    assert [*decode(gap, asked, said, Guesses(()), reach)] == [None] * passes
    assert said.ids == written
    assert passes == math.ceil((len(written) - begun) / (1 + right))


@torch.no_grad()
def test_a_gap_is_written_token_by_token_as_it_was_trained(asked: DiffusionGemma):
    gap = open_gap(asked, REQUEST)
    prompt, written = gap.prompt, [*islice(gap_tokens(gap, ()), 6)]
    batch, question = trained_on(asked, written)
    hidden = asked.network.encode(batch.ids, batch.position, attend_within(asked.network, batch))
    assert written == asked.network.logits(hidden[0, question + 1 : -1]).argmax(dim=-1).tolist()
    assert written == [*islice(gap_tokens(open_gap(asked, REQUEST), ()), 6)]
    # Nothing of it is left in the context that was read.
    assert asked.score(asked.encode(prompt.context), [written], prompt.suffix)[0][:-1] == pytest.approx(
        asked.network.logits(hidden[0, question + 1 : -1]).log_softmax(dim=-1).max(dim=-1).values.tolist(), abs=1e-4
    )


def test_gaps_are_scored_side_by_side_as_alone(asked: DiffusionGemma):
    prompt = asked.prompt(REQUEST)
    context, gaps = asked.encode(prompt.context), [asked.tokenize(text) for text in ("b + 3", "", "a", "b + 3 * a")]
    together = asked.score(context, gaps, prompt.suffix)
    assert [len(each) for each in together] == [len(gap) + 1 for gap in gaps]
    for gap, scores in zip(gaps, together, strict=True):
        assert asked.score(context, [gap], prompt.suffix)[0] == pytest.approx(scores, abs=1e-5)
    assert asked.score(context, [], prompt.suffix) == []


def test_the_likeliest_widths_are_filled(asked: DiffusionGemma):
    told = asked.widths(asked.encode(asked.prompt(REQUEST).context), asked.prompt(REQUEST).suffix)
    likely = sorted((width for width in told if width), key=told.__getitem__, reverse=True)
    seen: list[set[int]] = []
    step = asked.step

    def watched(rows: Rows) -> torch.Tensor:
        seen.append({int(open_.sum()) for open_ in rows.open})
        return step(rows)

    asked.step = watched
    try:
        fill(asked, REQUEST)
    finally:
        del asked.step
    room = asked.info.canvas_length - len(asked.prompt(REQUEST).suffix)
    assert seen[0] == {*[width for width in likely if width <= room][:PREDICTED]}


def test_the_causal_head_ends_a_gap_itself_or_at_the_told_width(asked: DiffusionGemma):
    free, told = fill_by_causal_head(asked, REQUEST), fill_by_causal_head(asked, replace(REQUEST, width=5))
    assert free.forwards in (free.width, free.width + 1)
    assert (told.width, told.forwards) == (5, 5)
