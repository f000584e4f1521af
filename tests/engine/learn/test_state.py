"""A run outlives the code that began it: a checkpoint is tensors and numbers, and names no module."""

import pickletools
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from engine.learn.state import CHECKPOINT, newest_state, open_state, save
from engine.learn.training import train
from tests.engine.learn.tiny import CPU, tiny, toy_corpus

SHAPE = replace(tiny().shape, hidden=16, intermediate=16, layers=1, full_every=1)
RECIPE = replace(tiny(steps=3), shape=SHAPE)
LAYER, HEAD = "layers.0", "self_conditioning"
MATRICES = {
    f"{LAYER}.self_attn.q_proj.weight": (32, 16),
    f"{LAYER}.self_attn.k_proj.weight": (16, 16),
    f"{LAYER}.self_attn.o_proj.weight": (16, 32),
    **{f"{part}.{name}_proj.weight": (16, 16) for part in (f"{LAYER}.mlp", HEAD) for name in ("gate", "up", "down")},
}
OTHERS = {
    "embed_tokens.weight": (300, 16),
    f"{LAYER}.self_attn.q_norm.weight": (16,),
    f"{LAYER}.self_attn.k_norm.weight": (16,),
    f"{LAYER}.input_layernorm.weight": (16,),
    f"{LAYER}.post_attention_layernorm.weight": (16,),
    f"{LAYER}.pre_feedforward_layernorm.weight": (16,),
    f"{LAYER}.post_feedforward_layernorm.weight": (16,),
    f"{LAYER}.post_feedforward_layernorm_1.weight": (16,),
    "norm.weight": (16,),
    f"{HEAD}.pre_norm.weight": (16,),
}


def as_it_was() -> dict[str, Any]:
    """What a run had written after two steps before the modules moved into rooms."""
    momentum = [{"momentum_buffer": torch.full(shape, 0.5)} for shape in MATRICES.values()]
    adam = [
        {"step": torch.tensor(2.0), "exp_avg": torch.full(shape, 0.25), "exp_avg_sq": torch.full(shape, 0.125)}
        for shape in OTHERS.values()
    ]
    rest = {"eps": 1e-8, "amsgrad": False, "maximize": False, "foreach": None, "capturable": False}
    rest |= {"differentiable": False, "fused": True, "decoupled_weight_decay": True, "betas": (0.9, 0.97)}
    return {
        "weights": {name: torch.ones(shape) for name, shape in (MATRICES | OTHERS).items()},
        "optimiser": [
            {
                "state": dict(enumerate(momentum)),
                "param_groups": [{"lr": 0.0002, "weight_decay": 0.01, "params": [*range(len(momentum))]}],
            },
            {
                "state": dict(enumerate(adam)),
                "param_groups": [{"lr": 0.00003, "weight_decay": 0.0, **rest, "params": [*range(len(adam))]}],
            },
        ],
        "step": 2,
        "tokens": 2 * RECIPE.step_tokens,
        "seconds": 3.5,
        "planned": RECIPE.tokens,
        "decay": RECIPE.decay,
    }


def test_a_checkpoint_of_before_the_modules_moved_is_read_and_gone_on_with(tmp_path: Path):
    torch.save(as_it_was(), tmp_path / CHECKPOINT)
    state = newest_state(RECIPE, tmp_path)
    assert (state.step, state.tokens, state.seconds) == (2, 2 * RECIPE.step_tokens, 3.5)
    assert all((p == 1).all() for p in state.module.model.decoder.parameters() if p.requires_grad)
    kept = [value for part in state.optimiser.state() for held in part["state"].values() for value in held.values()]
    assert {float(value.max()) for value in kept} == {0.5, 0.25, 0.125, 2.0}
    assert train(RECIPE, toy_corpus(), tmp_path, 0, CPU, lambda line: None, lambda: False).step == 3


def test_a_checkpoint_is_written_as_it_was(tmp_path: Path):
    state = train(RECIPE, toy_corpus(), tmp_path, 0, CPU, lambda line: None, lambda: False)
    save(state, tmp_path / "again.pt", RECIPE)
    written, told = torch.load(tmp_path / "again.pt", weights_only=True), as_it_was()
    # The mean came later; a checkpoint without one begins it.
    assert written.keys() == told.keys() | {"mean", "averaged"}
    assert {name: tuple(value.shape) for name, value in written["weights"].items()} == MATRICES | OTHERS
    for part, before in zip(written["optimiser"], told["optimiser"], strict=True):
        assert part["param_groups"][0].keys() == before["param_groups"][0].keys()
        for number, held in part["state"].items():
            assert {name: value.shape for name, value in held.items()} == {
                name: value.shape for name, value in before["state"][number].items()
            }


def test_a_checkpoint_names_no_module_of_ours(tmp_path: Path):
    save(open_state(RECIPE, tmp_path, 0, torch.device("cpu")), tmp_path / CHECKPOINT, RECIPE)
    with zipfile.ZipFile(tmp_path / CHECKPOINT) as archive:
        (pickled,) = [archive.read(name) for name in archive.namelist() if name.endswith("data.pkl")]
    named = {str(value).split(" ")[0] for code, value, _ in pickletools.genops(pickled) if code.name == "GLOBAL"}
    assert "STACK_GLOBAL" not in {code.name for code, _, _ in pickletools.genops(pickled)}
    assert {name.partition(".")[0] for name in named} == {"torch", "collections"}
