"""How much memory a model takes, from its sizes. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from engine.common.memory_plan import MemoryPlan

ROWS = 16
"""Canvases in one forward pass, of one window or several."""
CONTEXT = 4096
"""Tokens of context by default; a longer one costs memory and time, and helps little at a cursor."""
PASS = 2048
"""Tokens computed at once: more would need more scratch memory."""
_OPEN = 64
"""Positions open on each canvas."""
_LOGIT_NBYTES = 16
"""Of one token at one open position: its logit and what is made of it."""
_SAMPLER_NBYTES = 64 << 20
"""Blocks of logits with all that is made of them, at the most; `tests/engine/fill/test_memory.py` measures it."""
_KEPT_NBYTES = 8 << 20
"""Of the last block's weights, which a canvas keeps for its next step."""
_FEATURES = 32
"""So many numbers for each feature of a token are there at once inside a layer, its experts' included."""
_CUDA_NBYTES = 600 << 20
"""A context on the GPU, its kernels, and the workspace of its products."""
_LONGEST = 4 * CONTEXT
_BESIDE = 4
"""Contexts that are to fit beside each other where they may be longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What of a model decides on the memory that it works in."""

    vocabulary: int
    hidden: int
    """Features of a token."""
    token_features: int
    """Numbers that the keys and values of a token have, in all layers."""


def planned(weights: int, sizes: Sizes, *, itemsize: int = 2, context: int = CONTEXT, cuda: bool = True) -> MemoryPlan:
    """For weights of so many bytes, numbers of `itemsize` bytes and contexts of so many tokens."""
    logits = min(ROWS * _OPEN * sizes.vocabulary * _LOGIT_NBYTES, _SAMPLER_NBYTES + ROWS * _KEPT_NBYTES)
    return MemoryPlan(
        weights=weights,
        contexts=context * sizes.token_features * itemsize,
        canvases=PASS * sizes.token_features * itemsize,
        workspace=PASS * sizes.hidden * _FEATURES * itemsize + logits,
        library=_CUDA_NBYTES if cuda else 0,
    )


def context_for(sizes: Sizes, left: int) -> int:
    """Tokens of context on a GPU with so many bytes left beside one of the default: twice as many, as often as several
    of them can be kept."""
    context, token_nbytes = CONTEXT, 2 * sizes.token_features
    while context < _LONGEST and _BESIDE * 2 * context * token_nbytes <= left:
        context *= 2
    return context
