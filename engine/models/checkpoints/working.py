"""The memory that a model needs, by its sizes. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from engine.common.messages import MemoryPlan

ROWS = 16
"""Canvases in one forward pass, from one window or several."""
CONTEXT = 4096
"""Tokens of context by default; a longer one costs memory and time, and helps little at a cursor."""
PASS = 2048
"""Tokens computed at once; more would need more scratch memory."""
_OPEN = 64
"""Open positions on each canvas."""
_LOGIT_NBYTES = 16
"""Bytes for one token at one open position: its logit and what is computed from it."""
_SAMPLER_NBYTES = 64 << 20
"""Most bytes of a block of logits with all that is computed from it; `tests/engine/fill/test_memory.py` measures it."""
_KEPT_NBYTES = 8 << 20
"""Bytes of the last block's weights, which a canvas keeps for its next step."""
_FEATURES = 32
"""Numbers that exist at once inside a layer for each feature of a token, experts included."""
_CUDA_NBYTES = 600 << 20
"""Bytes of a CUDA context, its kernels, and the workspace of products."""
_LONGEST = 4 * CONTEXT
_BESIDE = 4
"""Contexts that must fit side by side where they may be longer."""
_FULL_PRECISION_NBYTES = 2 << 30
"""Largest size of a model that runs in float32 on the CPU, where few machines are fast in bfloat16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes that working memory depends on."""

    vocabulary: int
    hidden: int
    """Features of a token."""
    token_features: int
    """Numbers of a token's keys and values, in all layers."""


def planned(weights: int, sizes: Sizes, *, itemsize: int = 2, context: int = CONTEXT, cuda: bool = True) -> MemoryPlan:
    """The plan for weights of so many bytes, numbers of `itemsize` bytes and contexts of so many tokens."""
    logits = min(ROWS * _OPEN * sizes.vocabulary * _LOGIT_NBYTES, _SAMPLER_NBYTES + ROWS * _KEPT_NBYTES)
    return MemoryPlan(
        weights=weights,
        contexts=context * sizes.token_features * itemsize,
        canvases=PASS * sizes.token_features * itemsize,
        workspace=PASS * sizes.hidden * _FEATURES * itemsize + logits,
        library=_CUDA_NBYTES if cuda else 0,
    )


def cpu_itemsize(parameters: int) -> int:
    """Bytes of a number of a model of that size on the CPU: 4 in float32, 2 in bfloat16."""
    return 4 if 4 * parameters <= _FULL_PRECISION_NBYTES else 2


def context_for(sizes: Sizes, left: int) -> int:
    """Tokens of context on a GPU with so many bytes left beside a context of the default size: that is doubled as long
    as several of them fit."""
    context, token_nbytes = CONTEXT, 2 * sizes.token_features
    while context < _LONGEST and _BESIDE * 2 * context * token_nbytes <= left:
        context *= 2
    return context
