"""A model with an adapter against one whose weights were changed in place, in all families and formats."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engine.common.errors import ModelError
from engine.common.request import FillRequest
from engine.fill.loading import load
from engine.fill.pipeline import fill
from engine.models.adapters import applied
from engine.models.adapters.applied import with_adapter, with_pairs
from engine.models.adapters.files import Adapter, Pair
from engine.models.adapters.low_rank import LowRankLinear
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.quantizing import quantize
from engine.models.quantized.layers import PackedLinear
from tests.engine.adapters import ALPHA, RANK, drawn_pairs, metadata_for
from tests.engine.formats import choose

MODELS = Path(__file__).parents[3] / "models"
REQUEST = FillRequest(prefix="let a = 3\nlet b = ", suffix="\nprint a\n", width=6)


@pytest.fixture(scope="module")
def in_4_bit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("int4") / "toy"
    quantize(read_checkpoint(MODELS / "toy-experts", "toy"), out, lambda percent: None)
    return out


def opened(path: Path) -> Any:
    return load(str(path), "cpu").model


@torch.no_grad()
def with_changed_weights(model: Any, pairs: Mapping[str, Pair], scale: float) -> None:
    """In bfloat16, as they came."""
    for name, (a, b) in pairs.items():
        layer = model.network.module.get_submodule(name)
        assert isinstance(layer, nn.Linear)
        changed = layer.weight.float() + scale * (b.float() @ a.float())
        layer.weight = nn.Parameter(changed.bfloat16().to(layer.weight.dtype))
    model.network.module.requires_grad_(False)
    model.network.lay_out()


def logits(model: Any, request: FillRequest = REQUEST) -> list[list[float]]:
    """What a model says of a gap, read left to right or guessed from around it."""
    prompt = model.prompt(request)
    context = model.encode(prompt.context)
    return model.score(context, [model.tokenize("a + 1"), model.tokenize("4")], prompt.suffix)


def close(found: list[list[float]], expected: list[list[float]], within: float) -> bool:
    pairs = zip(found, expected, strict=True)
    return all(torch.allclose(torch.tensor(a), torch.tensor(b), atol=within, rtol=within) for a, b in pairs)


@pytest.mark.parametrize("merging", [True, False])
@pytest.mark.parametrize("name", ["toy-uniform", "toy-absorbing", "toy-experts", "toy-masked"])
def test_an_adapter_is_its_product_added_to_the_weights(name: str, merging: bool, monkeypatch: pytest.MonkeyPatch):
    if not merging:
        monkeypatch.setattr(applied, "MOST_MERGED_NBYTES", 0)
    model, reference = opened(MODELS / name), opened(MODELS / name)
    before, pairs = logits(model), drawn_pairs(model, seed=1)
    adapted = with_pairs(model, pairs, ALPHA / RANK)
    with_changed_weights(reference, pairs, ALPHA / RANK)
    assert any(isinstance(part, LowRankLinear) for part in adapted.network.module.modules()) == (not merging)
    assert close(logits(adapted), logits(reference), 1e-3 if merging else 0.05)
    assert not close(logits(adapted), before, 0.1)
    assert logits(model) == before
    assert fill(adapted, REQUEST).candidates


def test_weights_with_an_adapter_are_multiplied_in_the_format_that_they_came_in(monkeypatch: pytest.MonkeyPatch):
    choose(monkeypatch, bfloat16=True)
    model = opened(MODELS / "toy-uniform")
    adapted = with_pairs(model, drawn_pairs(model, seed=1), ALPHA / RANK)
    formats = [
        {part.__dict__["together"][3][0].dtype for part in each.network.module.modules() if "together" in part.__dict__}
        for each in (model, adapted)
    ]
    assert formats == [{torch.bfloat16}] * 2


def test_what_is_packed_has_the_pair_beside_it(in_4_bit: Path):
    model = opened(in_4_bit)
    pairs = drawn_pairs(model, seed=2)
    adapted = with_pairs(model, pairs, ALPHA / RANK)
    for name, (a, b) in pairs.items():
        packed, layer = model.network.module.get_submodule(name), adapted.network.module.get_submodule(name)
        assert isinstance(packed, PackedLinear)
        assert isinstance(layer, LowRankLinear)
        states = torch.randn(5, a.shape[1], generator=torch.Generator().manual_seed(0))
        numbers = packed(torch.eye(a.shape[1])).T + ALPHA / RANK * (b.float() @ a.float())
        assert torch.allclose(layer(states), states @ numbers.T, atol=0.02, rtol=0.02)
    assert fill(adapted, REQUEST).candidates


def test_what_no_pair_touches_is_shared():
    model = opened(MODELS / "toy-experts")
    adapted = with_pairs(model, drawn_pairs(model, seed=3), 2.0)
    own, shared = list[str](), list[str]()
    theirs = dict(model.network.module.named_parameters())
    for name, each in adapted.network.module.named_parameters():
        (shared if each.data_ptr() == theirs[name].data_ptr() else own).append(name)
    assert all(".self_attn." in name or ".mlp." in name for name in own)
    assert {name.rpartition(".layers.")[2].partition(".")[2] for name in shared if ".experts." in name}
    assert adapted.cache is model.cache


def test_contexts_of_one_are_not_taken_for_those_of_the_other():
    model = opened(MODELS / "toy-uniform")
    first, second = (with_pairs(model, drawn_pairs(model, seed), 2.0) for seed in (4, 5))
    apart = [logits(opened(MODELS / "toy-uniform"))]
    apart += [
        logits(with_pairs(alone, drawn_pairs(alone, seed), 2.0))
        for seed in (4, 5)
        for alone in [opened(MODELS / "toy-uniform")]
    ]
    assert apart[0] != apart[1] != apart[2]
    for _ in range(2):
        # In turn, over the same text.
        assert [logits(each) for each in (model, first, second)] == apart
    reused = model.cache.tokens_reused
    logits(first)
    assert model.cache.tokens_reused > reused, "its own context is found again"


def test_steps_and_threshold_are_those_that_were_fitted_anew(tmp_path: Path):
    model = opened(MODELS / "toy-uniform")
    metadata = metadata_for(model, tmp_path, max_steps=3, sure=0.5, threshold=0.25)
    adapted = with_adapter(model, Adapter(metadata=metadata, tensors=drawn_pairs(model, seed=6)))
    assert (adapted.info.sampling.max_steps, adapted.info.sampling.sure, adapted.info.threshold) == (3, 0.5, 0.25)
    assert adapted.info.adapter == str(tmp_path.resolve())
    assert fill(adapted, REQUEST).adapter == str(tmp_path.resolve())
    assert fill(model, REQUEST).adapter == ""


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("model.decoder.layers.0.self_attn.q_proj", (torch.zeros(4, 3), torch.zeros(5, 4))),
        ("model.decoder.layers.99.self_attn.q_proj", (torch.zeros(4, 3), torch.zeros(5, 4))),
        ("lm_head", (torch.zeros(4, 64), torch.zeros(512, 4))),
    ],
)
def test_a_pair_that_fits_no_layer_is_refused(name: str, pair: Pair):
    with pytest.raises(ModelError, match="train it again"):
        with_pairs(opened(MODELS / "toy-uniform"), {name: pair}, 2.0)


@pytest.mark.parametrize("fact", [{"max_steps": 0}, {"sure": -1.0}, {"threshold": 7.0}])
def test_numbers_that_nothing_can_be_filled_with_are_refused(tmp_path: Path, fact: dict[str, float]):
    model = opened(MODELS / "toy-uniform")
    with pytest.raises(ModelError):
        with_adapter(model, Adapter(metadata=metadata_for(model, tmp_path, **fact), tensors={}))
