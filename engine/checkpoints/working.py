"""How much memory a model works in beside its weights, from its sizes. Imports no torch."""

from __future__ import annotations

BASE_NBYTES = 1 << 30
"""Keys and values of contexts, scratch memory of layers, and what a library keeps for itself."""
ROWS = 16
"""Canvases in one forward pass, of one window or several."""
_OPEN = 64
"""Positions open on each."""
_LOGIT_NBYTES = 16
"""Of one token at one open position: the head's answer in its format and as float32, the signal made of the last
logits, and what the loop derives from them, each as large."""


def logits_nbytes(vocabulary: int) -> int:
    """What the logits of a forward pass take, with all that is made of them."""
    return ROWS * _OPEN * vocabulary * _LOGIT_NBYTES


def working_nbytes(vocabulary: int) -> int:
    """To keep free on a GPU beside the weights of a model with so many tokens."""
    return BASE_NBYTES + logits_nbytes(vocabulary)
