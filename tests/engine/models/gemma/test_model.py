"""The family's forward passes against transformers' own, and batches against single rows."""

from pathlib import Path

import pytest
import torch

from engine.models.base import SCORED_SUFFIX, Rows
from engine.models.gemma import model as gemma
from tests.engine.tiny import signal_of, tiny_model


@pytest.fixture(scope="module")
def model(released: Path):
    return tiny_model(released)


@pytest.fixture(scope="module")
def reference(released: Path):
    from transformers import DiffusionGemmaForBlockDiffusion

    return DiffusionGemmaForBlockDiffusion.from_pretrained(released, dtype=torch.float32).eval()


def rows(contexts, canvases, *, signal=None, conditioned=None):
    width = max(map(len, canvases))
    canvas = torch.tensor([[*ids, *[0] * (width - len(ids))] for ids in canvases])
    open_ = torch.arange(width) < torch.tensor([len(ids) for ids in canvases])[:, None]
    return Rows(
        contexts=contexts,
        canvas=canvas,
        lengths=[len(ids) for ids in canvases],
        open=open_,
        self_conditioning=signal,
        conditioned=conditioned or [signal is not None] * len(canvases),
    )


@pytest.mark.parametrize("length", [1, 15, 16, 17, 40], ids=lambda n: f"context {n}")
@pytest.mark.parametrize("conditioned", [False, True])
def test_a_step_gives_the_released_logits(model, reference, length: int, conditioned: bool):
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(20, 250, (1, length), generator=generator)
    canvas = torch.randint(20, 250, (1, 32), generator=generator)
    vocabulary = model.info.noise.vocab_size
    signal = torch.randn(1, 32, vocabulary, generator=generator) * 3 if conditioned else None
    with torch.no_grad():
        expected = reference(input_ids=ids, decoder_input_ids=canvas, self_conditioning_logits=signal).logits[0]
    own = signal_of(model, signal[0]) if conditioned else None
    batch = rows([model.encode(ids[0].tolist())], canvas.tolist(), signal=own)
    torch.testing.assert_close(model.step(batch).whole(), expected, rtol=1e-4, atol=1e-4)


def test_rows_of_a_ragged_batch_do_not_see_each_other(model):
    """Contexts shorter and longer than the window, canvases of different widths, one row at its first step."""
    contexts = [model.encode(list(range(30, 30 + n))) for n in (5, 40, 17)]
    canvases = [list(range(60, 60 + n)) for n in (4, 9, 7)]
    vocabulary = model.info.noise.vocab_size
    signal = signal_of(model, torch.randn(20, vocabulary, generator=torch.Generator().manual_seed(0)))
    batch = rows(contexts, canvases, signal=signal, conditioned=[True, False, True])
    together = model.step(batch).whole().split([4, 9, 7])
    parts = signal.split([4, 9, 7])
    for index in range(3):
        own = parts[index] if index != 1 else None
        alone = model.step(rows([contexts[index]], [canvases[index]], signal=own)).whole()
        torch.testing.assert_close(together[index], alone, rtol=1e-4, atol=1e-4)


def test_what_is_not_open_is_conditioned_on_itself(model, reference):
    """A pinned token in the reference: logits forced one-hot and the canvas re-asserted."""
    vocabulary = model.info.noise.vocab_size
    canvas = list(range(50, 58))
    logits = torch.randn(8, vocabulary, generator=torch.Generator().manual_seed(3))
    pinned = [1, 5, 6]
    forced = logits.clone()
    forced[pinned] = -1e4
    forced[pinned, [canvas[at] for at in pinned]] = 1e4
    with torch.no_grad():
        expected = reference(
            input_ids=torch.tensor([[2, 30, 31]]),
            decoder_input_ids=torch.tensor([canvas]),
            self_conditioning_logits=forced[None],
        ).logits[0]
    batch = rows([model.encode([2, 30, 31])], [canvas])
    batch.open[0, pinned] = False
    free = [at for at in range(8) if at not in pinned]
    batch.self_conditioning, batch.conditioned = signal_of(model, logits[free]), [True]
    torch.testing.assert_close(model.step(batch).whole(), expected[free], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("length", "suffix"), [(3, []), (16, list(range(90, 95))), (30, list(range(90, 120)))])
def test_scores_are_the_encoders_own(model, reference, length: int, suffix: list[int]):
    context = list(range(40, 40 + length))
    gaps = [[70, 71, 72], [80], []]
    scores = model.score(model.encode(context), gaps, suffix)
    read = suffix[:SCORED_SUFFIX]
    assert [len(row) for row in scores] == [3 + len(read), 1 + len(read), len(read)]
    for gap, score in zip(gaps[:2], scores, strict=False):
        row = gap + read
        with torch.no_grad():
            hidden = reference.model.encoder(input_ids=torch.tensor([context + row])).last_hidden_state
            capped = torch.tanh(reference.lm_head(hidden) / 30) * 30
        expected = capped[0].log_softmax(-1)[length - 1 : -1].gather(1, torch.tensor(row)[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(score), expected, rtol=1e-4, atol=1e-4)


def test_many_gaps_are_read_in_several_passes_and_score_the_same(model, monkeypatch: pytest.MonkeyPatch):
    context, suffix = model.encode(list(range(40, 60))), [90, 91]
    gaps = [[70 + at, 71, 72, 73][: 1 + at % 4] for at in range(9)]
    together, sizes, encode = model.score(context, gaps, suffix), [], model.network.encode
    monkeypatch.setattr(gemma, "PASS", 8)
    monkeypatch.setattr(model.network, "encode", lambda ids, *rest: sizes.append(ids.shape[1]) or encode(ids, *rest))
    parts = model.score(context, gaps, suffix)
    assert len(sizes) > 2
    assert max(sizes) <= 8
    for one, other in zip(parts, together, strict=True):
        torch.testing.assert_close(torch.tensor(one), torch.tensor(other), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("text", ["", "a b\n\tc", "😋é\r\n", "x = '<eos>'", "\0\x7f"])
def test_any_text_survives_the_tokens(model, text: str):
    assert model.detokenize(model.tokenize(text)) == text


def test_control_tokens_in_a_file_are_text(model):
    assert not set(model.tokenize("<eos><|turn>")) & set(model.info.forbidden_ids)
