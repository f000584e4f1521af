import hashlib
import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch

from engine.common.errors import BadInput
from engine.learn.packed import PackedCorpus
from engine.learn.pairs.batches import CanvasStep, StepSource
from engine.learn.pairs.canvas import (
    NOTHING,
    Breaks,
    Pairs,
    Prefilled,
    checked,
    greedy,
    lines,
    loss,
    prefill,
    said,
    targets,
)
from engine.learn.pairs.files import write_pairs
from engine.learn.pairs.readings import Readings
from engine.learn.pairs.recipe import PairsRecipe
from engine.learn.pairs.run import PairsSitting, PairsState, train_pairs
from engine.learn.pairs.written_lines import WrittenLines
from engine.models.causal.opening import Coder
from engine.models.causal.pairs import read_pairs
from engine.models.causal.prompt import context_ids
from tests.engine.coder import open_coder, write_coder
from tests.engine.learn.tiny import toy_corpus

TINY = PairsRecipe(
    rows=400, rank=4, alpha=4.0, context=64, shorter=0.3, snippets=0.0, contexts=2, widths=(8, 16), slots=32
)
CPU = PairsSitting(device=torch.device("cpu"))
_no_report = lambda line: None  # noqa: E731


@cache
def coder() -> Coder:
    return open_coder(coder_file())


@cache
def coder_file() -> Path:
    return write_coder(Path(mkdtemp(prefix="dg-lsp-coder-")) / "coder.gguf")


@cache
def source(recipe: PairsRecipe = TINY) -> StepSource:
    folder = Path(mkdtemp(prefix="dg-lsp-coder-"))
    coder().tokenizer.save(str(folder / "tokenizer.json"))
    return StepSource(corpus=toy_corpus(), tokenizer=folder, recipe=recipe, fim=coder().fim, seed=0)


def run(folder: Path, recipe: PairsRecipe = TINY, pause_after: int | None = None, seed: int = 0) -> PairsState:
    turns = iter(range(10**6))
    return train_pairs(
        coder(),
        recipe,
        toy_corpus(),
        folder,
        seed,
        CPU,
        _no_report,
        lambda: pause_after is not None and next(turns) >= pause_after,
    )


def test_a_reading_shows_each_gap_what_serving_would():
    corpus = PackedCorpus(toy_corpus(), "train", coder().tokenizer)
    readings = Readings(corpus, coder().fim, TINY, random.Random(0))
    drawn = [reading for _ in range(200) if (reading := readings.draw(4, 16))]
    assert len(drawn) > 100
    decode = coder().tokenizer.decode
    several = 0
    for reading in drawn:
        fim = coder().fim
        assert len(reading.context) <= TINY.context
        middle = reading.context.index(fim.middle)
        assert reading.context == context_ids(fim, reading.suffix, reading.context[middle + 1 :])
        assert [gap.cut for gap in reading.gaps] == sorted({gap.cut for gap in reading.gaps})
        after = decode(reading.suffix)
        # Whatever a gap begins at, the same text comes out up to where all of them end.
        whole = {decode(reading.context[middle + 1 : gap.cut]) + decode(gap.ids) + after for gap in reading.gaps}
        assert len(whole) == 1
        text = corpus_text(corpus)
        assert next(iter(whole)) in text
        for gap in reading.gaps:
            assert gap.to_line_end == ("\n" not in decode(gap.ids) and after.startswith("\n"))
        several += len(reading.gaps) > 1
    assert several > 50


def corpus_text(corpus: PackedCorpus) -> str:
    return "\0".join(corpus.text(index) for index in range(len(corpus)))


def test_the_base_reads_canvases_as_it_reads_a_text():
    """Checked against a plain pass over the same tokens; both in float32, whose sums differ by their order alone."""
    step = source()[0]
    base = coder().network
    of = prefill(base, step)
    drafts = torch.randint(0, 250, step.text.shape)
    found = checked(base, of, drafts)
    written = greedy(base, of, 5)
    for row, gap in ((0, 0), (1, 1)):
        context = step.ids[row, : step.cut[row, gap]].tolist()
        logits = _plain(context + drafts[row, gap].tolist())
        assert found[row, gap].tolist() == logits[len(context) - 1 : -1].argmax(dim=-1).tolist()
        for token in written[row, gap].tolist():
            assert token == int(_plain(context)[-1].argmax())
            context.append(token)


def _plain(ids: list[int]) -> torch.Tensor:
    network, size = coder().network, len(ids)
    mask = torch.ones(size, size, dtype=torch.bool).tril()[None, None]
    hidden = network.run(
        torch.tensor([ids]),
        torch.arange(size)[None],
        lambda _, query, key, value: network.attention(query, key, value, mask),
    )
    return network.logits(hidden)[0]


def test_pairs_begin_as_the_base_and_act_on_canvases_alone():
    # On a canvas of one slot, which has no other one to attend to.
    step = source(replace(TINY, widths=(1,)))[0]
    pairs = Pairs(coder().network, TINY, coder().network.embeddings.weight[0], 0)
    of = prefill(coder().network, step)
    drafts = torch.randint(0, 250, step.text.shape)

    def choices() -> torch.Tensor:
        return coder().network.logits(said(pairs, of, drafts)).argmax(dim=-1)

    before = prefill(coder().network, step).keys
    assert choices().equal(checked(coder().network, of, drafts))
    with torch.no_grad():
        for name, each in pairs.trained().items():
            if name.endswith("lora_B"):
                each.normal_()
    assert not choices().equal(checked(coder().network, of, drafts))
    assert all(a[0].equal(b[0]) for a, b in zip(before, prefill(coder().network, step).keys, strict=True))


def test_a_slot_attends_to_those_after_it():
    step = source()[0]
    of = prefill(coder().network, step)
    pairs = Pairs(coder().network, TINY, coder().network.embeddings.weight[0], 0)
    shown = torch.full_like(step.text, -1)
    changed = shown.clone()
    changed[..., 5] = 7
    first, second = (said(pairs, of, each)[:, :, :5] for each in (shown, changed))
    assert not torch.allclose(first, second, atol=1e-5)


def test_what_the_base_writes_is_learnt_up_to_its_line_end():
    encode, pad = coder().encode, coder().fim.pad
    breaks = Breaks.of(coder(), torch.device("cpu"))
    written = torch.tensor([[encode("ab\nc"), [*encode("f)\nc")[:3], 5], encode("abcd")]])[:, :, :4]
    found = lines(written, breaks, pad)[0].tolist()
    a, b = encode("ab")
    assert found[0] == [a, b, pad, pad]
    # The token ")\n" ends the line, too: what stands before the break is said by a token of its own.
    assert found[1] == [*encode("f"), *encode(")"), pad, pad]
    assert found[2] == encode("abcd")[:4]


def test_the_text_is_learnt_where_there_is_a_gap():
    text = torch.tensor([[[1, 2, 3], [4, 5, 6]]])
    found = targets(_with(text, gap=torch.tensor([[2, 0]])))
    assert found[0].tolist() == [[1, 2, 3], [NOTHING] * 3]


def _with(text: torch.Tensor, gap: torch.Tensor) -> CanvasStep:
    rows, count, width = text.shape
    return CanvasStep(
        ids=torch.zeros(rows, 8, dtype=torch.long),
        length=torch.full((rows,), 8),
        cut=torch.full((rows, count), 8),
        text=text,
        gap=gap,
        to_line_end=torch.ones(rows, count, dtype=torch.bool),
        draw=torch.zeros(rows, count, width),
        known=torch.zeros(rows, count),
    )


def test_what_is_shown_and_what_is_unused_counts_for_nothing():
    step = source()[0]
    pairs = Pairs(coder().network, TINY, coder().network.embeddings.weight[0], 0)
    pad = coder().fim.pad
    of = prefill(coder().network, step)
    target = targets(step)

    def counted(of: Prefilled, **changes: Any) -> int:
        head = coder().network.module.lm_head.weight
        return int(loss(pairs, of, target, replace(TINY, **changes), head, pad)[1])

    blank = replace(of, step=replace(step, known=torch.zeros_like(step.known)))
    there = step.gap > 0
    # Each token, the first slot after them, and three more where there are so many.
    width = step.text.shape[2]
    assert counted(blank) == int((step.gap.clamp_max(width) + (width - step.gap).clamp(0, 4))[there].sum())
    assert counted(of) < counted(blank)


@cache
def _breaks() -> Breaks:
    """As if one of four tokens held a line break: random weights write few by themselves."""
    breaks = Breaks.of(coder(), torch.device("cpu"))
    every = torch.arange(len(breaks.inside)) % 4 == 0
    return Breaks(inside=breaks.inside | every, head=torch.where(every, coder().fim.pad, breaks.head))


def test_gaps_are_cut_out_of_what_the_base_writes():
    """Checked against a plain pass: each canvas's tokens are those that the base says after all that stands before it,
    and the keys beside it are those of a reading of these tokens."""
    recipe = replace(TINY, written=12, batch=4)
    breaks, pad = _breaks(), coder().fim.pad
    answers = WrittenLines(coder(), source(recipe), breaks)
    seen = 0
    for number in range(8):
        of = answers.step(number)
        step = of.step
        fresh = prefill(coder().network, step)
        for row, gap in torch.nonzero(step.gap).tolist():
            cut, size = int(step.cut[row, gap]), int(step.gap[row, gap])
            assert step.length[row] <= cut < step.length[row] + recipe.written
            before = step.ids[row, :cut].tolist()
            for token in step.text[row, gap, :size].tolist():
                assert token == int(_plain(before)[-1].argmax())
                assert not breaks.inside[token]
                before.append(token)
            assert (step.text[row, gap, size:] == pad).all()
            for (key, value), (again, same) in zip(of.keys, fresh.keys, strict=True):
                assert torch.allclose(key[row, :, : cut - 1], again[row, :, : cut - 1], atol=1e-4)
                assert torch.allclose(value[row, :, : cut - 1], same[row, :, : cut - 1], atol=1e-4)
            seen += 1
    assert seen > 5


def test_each_canvas_of_a_step_has_a_gap_in_some_context():
    """A canvas that is empty in all contexts would cost as much as one that teaches something."""
    recipe = replace(TINY, written=12, batch=4, widths=(4, 8), slots=256)
    answers = WrittenLines(coder(), source(recipe), _breaks())
    for number in range(4):
        for step in (source(recipe)[number], answers.step(number).step):
            assert (step.gap > 0).any(dim=0).all()


def test_answers_are_the_same_whatever_was_asked_for_before():
    recipe = replace(TINY, written=12, batch=4)
    first, second = (WrittenLines(coder(), source(recipe), _breaks()) for _ in range(2))
    assert not first.step(0).step.ids.equal(first.step(1).step.ids)
    here, there = first.step(3), second.step(3)
    assert here.step.ids.equal(there.step.ids)
    assert here.step.text.equal(there.step.text)
    assert here.step.draw.equal(there.step.draw)


@pytest.mark.parametrize(("pause_after", "distilled"), [(1, 0.0), (3, 0.0), (3, 0.5)])
def test_a_paused_run_goes_on_as_if_it_had_not_been(tmp_path: Path, pause_after: int, distilled: float):
    recipe = replace(TINY, distilled=distilled, batch=4)
    whole, paused = run(tmp_path / "a", recipe), run(tmp_path / "b", recipe, pause_after=pause_after)
    assert paused.step == pause_after < whole.step
    resumed = run(tmp_path / "b", recipe)
    assert (resumed.step, resumed.rows, resumed.gaps) == (whole.step, whole.rows, whole.gaps)
    for name, each in whole.pairs.trained().items():
        assert each.equal(resumed.pairs.trained()[name]), name


def test_a_run_of_another_shape_is_refused(tmp_path: Path):
    run(tmp_path, pause_after=1)
    with pytest.raises(BadInput, match="another shape"):
        run(tmp_path, replace(TINY, rank=8))


def test_written_pairs_are_read_again_and_gone_on_from(tmp_path: Path):
    state = run(tmp_path / "a")
    write_pairs(state.pairs.trained(), TINY, coder_file(), state.counts(), tmp_path / "out")
    held = read_pairs(tmp_path / "out")
    for name, each in state.pairs.trained().items():
        # Bytes with a scale a row: half a step of its largest number by 127.
        step = each.detach().abs().amax(dim=-1, keepdim=True) / 127
        assert ((held[name] - each.detach()).abs() <= 0.501 * step + 1e-9).all(), name
    said = json.loads((tmp_path / "out" / "pairs.json").read_text())
    assert said["base"]["sha256"] == hashlib.sha256(coder_file().read_bytes()).hexdigest()
    assert (said["rows"], said["recipe"]["rank"]) == (state.rows, TINY.rank)
    sitting = replace(CPU, start_from=tmp_path / "out")
    begun = train_pairs(coder(), TINY, toy_corpus(), tmp_path / "b", 0, sitting, _no_report, lambda: True)
    assert all(held[name].equal(each) for name, each in begun.pairs.trained().items())


def test_it_learns(tmp_path: Path):
    lines: list[str] = []
    recipe = replace(TINY, rows=12_000, rate=1e-2, contexts=8, distilled=0.0, decay=0.3)
    train_pairs(coder(), recipe, toy_corpus(), tmp_path, 0, CPU, lines.append)
    losses = [float(line.partition("loss ")[2].split()[0]) for line in lines if "loss" in line]
    assert losses[-1] < losses[0] - 1
    assert "accepted" in lines[-1]


def test_workers_make_the_same_steps():
    import engine.learn.pairs.batches as batches

    made = [list(batches.steps(source(), range(2), torch.device("cpu"), workers)) for workers in (0, 2)]
    for here, there in zip(*made, strict=True):
        assert here.ids.equal(there.ids)
        assert here.text.equal(there.text)
        assert here.draw.equal(there.draw)
