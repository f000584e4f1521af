"""One pass over the vocabulary in blocks, held against what whole logits say."""

import math

import pytest
import torch
from torch import Tensor

from engine.fill.constraints import Bans
from engine.fill.distributions import Distributions, look
from engine.models import logits as module
from engine.models.logits import Head, Logits, columns, dense, log_probabilities

F, V, E = 12, 300, 8


@pytest.fixture(params=[V, 7, 1], ids=["one block", "blocks of 7", "blocks of one"], autouse=True)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Tokens of a block."""
    monkeypatch.setattr(module, "_NUMBERS", 0)
    monkeypatch.setattr(module, "_FEWEST", request.param)
    return request.param


def random(seed: int, *shape: int, spread: float = 3.0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * spread


def over(logits: Tensor, table: Tensor | None = None) -> Logits:
    return Logits(hidden=logits, head=Head(columns, logits.shape[1], table))


def banned() -> tuple[Bans, Tensor]:
    """Some tokens everywhere, one at some positions, all but some at one; and which tokens [F, V] may stand."""
    some, only, first = torch.tensor([0, 1, 50, 299]), torch.tensor([70, 71, 200]), torch.arange(F) < 4
    may = torch.ones(F, V, dtype=torch.bool)
    may[:, some] = False
    may[:4, 9] = False
    may[7] = torch.isin(torch.arange(V), only)
    return Bans(out=[(None, some), (first, torch.tensor([9]))], only=[(torch.arange(F) == 7, only)]), may


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_it_says_what_whole_logits_say(temperature: float):
    raw, table, asked = random(0, F, V), random(1, V, E), torch.tensor([[3, 299, 50, 3]]).repeat(F, 1)
    bans, may = banned()
    said = look(over(raw, table), bans, temperature=temperature, queried=asked, top=5)
    logs = raw.masked_fill(~may, -torch.inf).div(temperature).log_softmax(-1)
    assert torch.equal(said.likeliest, logs.argmax(-1))
    assert torch.equal(said.drawn, said.likeliest)
    close = torch.testing.assert_close
    close(said.log_likeliest, logs.amax(-1))
    close(said.entropy, torch.distributions.Categorical(logits=logs).entropy())
    close(said.log_queried, logs.gather(1, asked))
    close(said.log_total, raw.masked_fill(~may, -torch.inf).div(temperature).logsumexp(-1))
    close(said.signal.embeddings(), logs.exp() @ table)
    values, tokens = logs.topk(5)
    close(said.top[0], values)
    assert torch.equal(said.top[1][values.isfinite()], tokens[values.isfinite()])


def test_unlike_scores_do_not_overflow():
    raw = torch.tensor([[-1e30, 0.0, 88.0, 2e4, 2e4 - 1], [-3e4, -3e4, -3e4, -torch.inf, -3e4]])
    said = look(dense(raw))
    torch.testing.assert_close(said.entropy[1], torch.tensor(math.log(4)))
    wanted = torch.distributions.Categorical(logits=raw[0].double()).entropy().float()
    torch.testing.assert_close(said.entropy[0], wanted)
    assert said.likeliest.tolist() == [3, 0]


def test_where_only_the_last_token_may_stand_it_is_sure():
    bans = Bans(only=[(torch.tensor([True, False]), torch.tensor([V - 1]))])
    said = look(over(random(0, 2, V)), bans, drawing=True, generator=torch.Generator().manual_seed(0))
    assert int(said.likeliest[0]) == int(said.drawn[0]) == V - 1
    assert said.entropy[0].item() == said.log_likeliest[0].item() == 0


@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_tokens_are_drawn_as_often_as_they_are_likely(top_p: float):
    """Pearson's chi-squared of 40,000 draws, whose 99.9% quantile is about k + 4.4 sqrt(k) at k degrees of freedom."""
    count, raw = 40_000, random(5, 1, 40, spread=1.0)
    bans = Bans(out=[(None, torch.tensor([0, 11]))])
    said = look(
        over(raw.expand(count, -1)), bans, drawing=True, top_p=top_p, generator=torch.Generator().manual_seed(1)
    )
    raw[0, [0, 11]] = -torch.inf
    wanted = raw[0].softmax(-1)
    order = wanted.argsort(descending=True)
    wanted[order[(wanted[order].cumsum(0) - wanted[order]) >= top_p]] = 0
    expected = count * wanted / wanted.sum()
    seen = said.drawn.bincount(minlength=40).float()
    possible = expected > 0
    assert not seen[~possible].any()
    statistic = ((seen - expected)[possible].square() / expected[possible]).sum()
    freedom = int(possible.sum()) - 1
    assert statistic < freedom + 4.4 * freedom**0.5
    torch.testing.assert_close(said.log_drawn, raw[0].log_softmax(-1)[said.drawn])


def test_positions_are_drawn_apart_from_each_other():
    said = look(over(torch.zeros(2, 2).repeat(2000, 1)), drawing=True, generator=torch.Generator().manual_seed(2))
    both = (said.drawn[0::2] * 2 + said.drawn[1::2]).bincount(minlength=4)
    assert (both - 500).abs().max() < 90, "four standard deviations"


def test_others_take_the_likeliest_token():
    raw, drawing = random(3, F, V, spread=0.5), torch.arange(F) % 3 == 0
    said = look(over(raw), drawing=drawing, generator=torch.Generator().manual_seed(0))
    assert torch.equal(said.drawn[~drawing], raw.argmax(-1)[~drawing])
    assert (said.drawn[drawing] != raw.argmax(-1)[drawing]).any()
    torch.testing.assert_close(said.log_drawn, raw.log_softmax(-1).gather(1, said.drawn[:, None])[:, 0])


def test_a_nucleus_holds_the_likeliest_tokens_and_no_others():
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().repeat(400, 1)

    def drawn(top_p: float) -> set[int]:
        generator = torch.Generator().manual_seed(0)
        return set(look(over(logits), drawing=True, top_p=top_p, generator=generator).drawn.tolist())

    assert [drawn(top_p) for top_p in (0.1, 0.49, 0.6, 0.9, 1.0)] == [{0}, {0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}]


def test_a_signal_is_kept_of_some_positions_and_says_nothing_of_new_ones():
    raw, table = random(0, F, V), random(1, V, E)
    signal = look(over(raw, table)).signal
    kept = torch.arange(F) % 2 == 0
    expected = raw.softmax(-1) @ table
    torch.testing.assert_close(signal[kept].embeddings(), expected[kept])
    wider = signal[kept].spread(kept).embeddings()
    torch.testing.assert_close(wider[kept], expected[kept])
    torch.testing.assert_close(wider[~kept], table.mean(0).expand(F // 2, -1))


def test_a_model_that_is_not_told_what_was_said_keeps_nothing_of_it():
    signal = look(over(random(0, F, V))).signal
    assert signal.last.numel() == 0
    assert signal.embeddings().shape == (F, 0)


def test_a_guess_is_as_likely_as_its_logit_says():
    table = random(1, V, E)
    head = Head(columns, V, table)
    guessed = head.guessed(torch.tensor([17, -1]), 8.0)
    expected = torch.nn.functional.one_hot(torch.tensor([17]), V).float().mul(8).softmax(-1) @ table
    torch.testing.assert_close(guessed, torch.cat((expected, table.mean(0)[None])))


def test_logits_of_some_tokens_and_positions():
    raw = random(0, F, V)
    logits, tokens = over(raw), torch.tensor([5, 4, 299])
    assert torch.equal(logits.of(tokens), raw[:, tokens])
    assert torch.equal(logits[3:5].whole(), raw[3:5])
    assert [part.whole().shape for part in logits.split([2, 10])] == [(2, V), (10, V)]
    torch.testing.assert_close(
        log_probabilities(logits, tokens.repeat(4)), raw.log_softmax(-1)[range(F), [5, 4, 299] * 4]
    )


def test_what_was_looked_at_stays_as_it_was():
    raw = random(0, F, V)
    before = raw.clone()
    bans, _ = banned()
    assert isinstance(look(over(raw), bans, temperature=0.5), Distributions)
    assert torch.equal(raw, before)
