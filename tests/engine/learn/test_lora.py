"""Pairs beside frozen layers: what they add, what flows through them, and that they leave no trace."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.fill.loading import load
from engine.learn.learn import parameters_of
from engine.learn.lora import (
    FrozenPacked,
    MergedLinear,
    RecomputedGemma,
    adapted,
    pairs_of,
    parameters_from,
)
from engine.learn.training import BatchSource, step_losses, total_loss
from engine.learn.training_recipe import Recipe
from engine.models.adapters.applied import with_pairs
from engine.models.adapters.low_rank import LowRankLinear
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.directory import METADATA_FILE
from engine.models.checkpoints.quantizing import quantize
from engine.models.gemma.model import DiffusionGemma
from engine.models.gemma.network import GemmaNetwork
from engine.models.quantized.layers import CpuInt4, PackedWeights, packed_in
from tests.engine.formats import choose
from tests.engine.learn.tiny import CPU, tiny, toy_corpus
from tests.engine.quantized import FORMATS, random_packed

TOY = Path(__file__).parents[2] / "models" / "toy-experts"


@pytest.fixture(scope="module")
def in_4_bit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("int4") / "toy"
    quantize(read_checkpoint(TOY, "toy"), out, lambda percent: None)
    assert (out / METADATA_FILE).exists()
    return out


def module_of(path: Path) -> nn.Module:
    model = load(str(path), "cpu").model
    assert isinstance(model, DiffusionGemma)
    return model.network.module


def toy_module() -> nn.Module:
    return module_of(TOY)


def read(network: GemmaNetwork) -> torch.Tensor:
    """Hidden states of a few tokens that see each other."""

    def attend(index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return network.attention(query, key, value)

    return network.encode(torch.arange(20, 30)[None], torch.arange(10)[None], attend)


def drawn(pairs: dict[str, LowRankLinear], seed: int = 1) -> None:
    """Numbers for what begins as zero."""
    generator = torch.Generator().manual_seed(seed)
    for pair in pairs.values():
        pair.lora_B.data.normal_(std=0.05, generator=generator)


def gradients(network: GemmaNetwork, pairs: dict[str, LowRankLinear], recipe: Recipe) -> dict[str, torch.Tensor]:
    batch = BatchSource(corpus=toy_corpus(), recipe=recipe, seed=0).batch(0, recipe.tokens)
    total_loss(step_losses(network, batch, CPU), recipe).backward()
    found = {name: p.grad.clone() for name, p in parameters_of(pairs).items() if p.grad is not None}
    for p in parameters_of(pairs).values():
        p.grad = None
    return found


@pytest.mark.parametrize("layout", FORMATS)
def test_gradients_flow_through_packed_weights_as_through_their_numbers(layout: str):
    packed = random_packed(layout, (3, 64, 96))
    states = torch.randn(5, 96, requires_grad=True)
    wanted = torch.randn(5, 64)
    for expert in range(3):
        (ours,) = torch.autograd.grad(FrozenPacked(packed).product(states, expert), states, wanted)
        (theirs,) = torch.autograd.grad(F.linear(states, packed.matrix(expert)), states, wanted)
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_gradients_flow_through_the_processors_own_operator():
    weights = CpuInt4((64, 96))
    plain = random_packed("int4 symmetric", (64, 96), torch.bfloat16)
    weights.put(0, {"codes": plain.codes[0], "scales": plain.scales[0]})
    states = torch.randn(5, 96, dtype=torch.bfloat16, requires_grad=True)
    wanted = torch.randn(5, 64, dtype=torch.bfloat16)
    (ours,) = torch.autograd.grad(FrozenPacked(weights).product(states, 0), states, wanted)
    expected = wanted.float() @ plain.matrix(0)
    assert ours.dtype == torch.bfloat16
    assert (ours.float() - expected).abs().max() < 0.02 * expected.abs().max()


def test_a_new_pair_adds_nothing_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch):
    # What is learnt beside is multiplied as it lies, else in another format.
    choose(monkeypatch)
    module = toy_module()
    before = {name: (id(part), part) for name, part in module.named_modules()}
    network = GemmaNetwork(module)
    plain = read(network)
    with adapted(module, rank=4) as pairs:
        assert torch.equal(read(network), plain)
        drawn(pairs)
        assert not torch.allclose(read(network), plain)
    assert torch.equal(read(network), plain)
    assert {name: id(part) for name, part in module.named_modules()} == {name: at for name, (at, _) in before.items()}


def test_attention_and_dense_blocks_are_adapted_and_nothing_else():
    with adapted(toy_module()) as pairs:
        kinds = {name.rpartition(".layers.")[2].partition(".")[2] for name in pairs}
    assert kinds == {
        *(f"self_attn.{each}_proj" for each in "qkvo"),
        *(f"mlp.{each}_proj" for each in ("gate", "up", "down")),
    }
    assert all(name.startswith("model.decoder.layers.") for name in pairs)


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_learnt_is_served_as_it_was_learnt(in_4_bit: Path, packed: bool):
    model = load(str(in_4_bit if packed else TOY), "cpu").model
    assert isinstance(model, DiffusionGemma)
    plain = read(model.network)
    with adapted(model.network.module, rank=4, alpha=8) as pairs:
        drawn(pairs)
        beside = read(GemmaNetwork(model.network.module))
        tensors = pairs_of(parameters_of(pairs))
    assert {*parameters_from(tensors)} == {*parameters_of(pairs)}
    served = with_pairs(model, tensors, 2.0)
    assert torch.allclose(read(served.network), beside, atol=0.05)
    assert not torch.allclose(beside, plain, atol=1e-2)
    assert torch.equal(read(model.network), plain)


def test_a_sum_made_once_gives_what_pairs_beside_weights_give(monkeypatch: pytest.MonkeyPatch):
    module = toy_module()

    def learnt(most_nbytes: int) -> tuple[set[type], torch.Tensor, dict[str, torch.Tensor]]:
        monkeypatch.setattr("engine.learn.lora.MOST_MERGED_NBYTES", most_nbytes)
        with adapted(module, rank=4) as pairs:
            drawn(pairs)
            network = GemmaNetwork(module)
            return {type(pair) for pair in pairs.values()}, read(network), gradients(network, pairs, tiny())

    once, states, found = learnt(1 << 20)
    beside, expected, wanted = learnt(0)
    assert (once, beside) == ({MergedLinear}, {LowRankLinear})
    assert torch.allclose(states, expected, atol=1e-4)
    assert all(torch.allclose(found[name], wanted[name], rtol=1e-3, atol=1e-5) for name in wanted)


def test_weights_in_a_slow_format_have_their_pairs_beside_them(monkeypatch: pytest.MonkeyPatch):
    choose(monkeypatch)
    with adapted(toy_module().bfloat16(), rank=4) as pairs:
        assert {type(pair) for pair in pairs.values()} == {LowRankLinear}


def test_computing_again_gives_the_same_gradients():
    module = toy_module()
    with adapted(module, rank=4) as pairs:
        drawn(pairs)
        kept = gradients(GemmaNetwork(module), pairs, tiny())
        again = gradients(RecomputedGemma(module), pairs, tiny())
    assert len(kept) == 2 * len(pairs)
    assert all(torch.allclose(kept[name], again[name], atol=1e-6) for name in kept)


def test_a_model_in_4_bit_has_the_gradients_of_its_numbers(in_4_bit: Path):
    packed = module_of(in_4_bit)
    assert packed_in(packed)
    # Its own numbers, in a module that holds them in full.
    plain = toy_module()
    numbers(packed, plain)
    assert not packed_in(plain)
    found: list[dict[str, torch.Tensor]] = []
    for module, kind in ((packed, RecomputedGemma), (plain, GemmaNetwork)):
        with adapted(module, seed=3) as pairs:
            drawn(pairs)
            recipe = tiny()
            found.append(gradients(kind(module), pairs, recipe))
    assert found[0].keys() == found[1].keys()
    for name, ours in found[0].items():
        assert torch.allclose(ours, found[1][name], atol=1e-3 * found[1][name].abs().max().item() + 1e-6), name


@torch.no_grad()
def numbers(packed: nn.Module, plain: nn.Module) -> None:
    """Let `plain` hold what `packed` stands for."""
    for path, part in packed.named_modules():
        if isinstance(part, PackedWeights):
            unit = torch.eye(part.shape[-1])
            matrices = torch.stack([part.product(unit, expert).T for expert in range(part.experts)])
            target = plain.get_parameter(path)
            target.copy_(matrices.view(target.shape))
