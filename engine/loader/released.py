"""Released checkpoints that fill gaps: what they take, what they are good for, and which one suits a machine.

Parameters and bytes follow from the published sizes (config.json; weights in bfloat16, unless files are smaller).
Imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.checkpoints.working import working_nbytes
from engine.core.sizes import binary_bytes

_BYTES = 2
"""Of a parameter in bfloat16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One checkpoint on the Hugging Face Hub."""

    hub_id: str
    parameters: int
    vocabulary: int
    """Tokens."""
    licence: str
    length: str
    """Its length strategy."""
    good_for: str
    packed_nbytes: int = 0
    """On disk, where it is not all in bfloat16."""

    @property
    def download_nbytes(self) -> int:
        """On disk, and about what the weights take in memory."""
        return self.packed_nbytes or self.parameters * _BYTES

    @property
    def memory_nbytes(self) -> int:
        """To run with."""
        return self.download_nbytes + working_nbytes(self.vocabulary)


_DREAM, _LLADA = 7_615_616_512, 8_015_581_184
_QWEN_TOKENS, _LLADA_TOKENS = 152_064, 126_464
RELEASED = (
    Released(
        hub_id="Dream-org/DreamOn-v0-7B",
        parameters=_DREAM,
        vocabulary=_QWEN_TOKENS,
        licence="Apache-2.0",
        length="expand",
        good_for="filling gaps: the best single lines that fit a 24 GB card",
    ),
    Released(
        hub_id="fredzzp/open-dcoder-0.5B",
        parameters=494_032_768,
        vocabulary=151_936,
        licence="see its card",
        length="calibrated",
        good_for="small cards, and patient processors",
    ),
    Released(
        hub_id="google/diffusiongemma-26B-A4B-it",
        parameters=25_800_000_000,
        vocabulary=262_144,
        licence="see its card",
        length="discover",
        good_for="instructions, long gaps, rewriting",
    ),
    Released(
        hub_id="nvidia/diffusiongemma-26B-A4B-it-NVFP4",
        parameters=25_800_000_000,
        vocabulary=262_144,
        licence="see its card",
        length="discover",
        good_for="the same in 4 bit, slow as yet: decoded before each product",
        packed_nbytes=18_900_000_000,
    ),
    Released(
        hub_id="Dream-org/Dream-Coder-v0-Base-7B",
        parameters=_DREAM,
        vocabulary=_QWEN_TOKENS,
        licence="Apache-2.0",
        length="calibrated",
        good_for="filling gaps of a known kind, after `python -m engine.cli.calibrate`",
    ),
    Released(
        hub_id="Dream-org/Dream-Coder-v0-Instruct-7B",
        parameters=_DREAM,
        vocabulary=_QWEN_TOKENS,
        licence="Apache-2.0",
        length="calibrated",
        good_for="the same; its chat is not used",
    ),
    Released(
        hub_id="apple/DiffuCoder-7B-Base",
        parameters=_DREAM,
        vocabulary=_QWEN_TOKENS,
        licence="Apple AMLR: research only",
        length="calibrated",
        good_for="comparing",
    ),
    Released(
        hub_id="GSAI-ML/LLaDA-8B-Base",
        parameters=_LLADA,
        vocabulary=_LLADA_TOKENS,
        licence="MIT",
        length="calibrated",
        good_for="prose and comments; little code",
    ),
)
"""Best first for filling gaps in code."""
_FOR_GAPS = 2
"""So many of the first are recommended by memory alone."""


def known(hub_id: str) -> Released | None:
    return next((each for each in RELEASED if each.hub_id.lower() == hub_id.lower()), None)


def recommended(gpu_nbytes: Sequence[int]) -> Released | None:
    """The best one for filling gaps that one of the GPUs has free memory for; None: none, or there is no GPU."""
    most = max(gpu_nbytes, default=0)
    return next((each for each in RELEASED[:_FOR_GAPS] if each.memory_nbytes <= most), None)


def advice(gpu_nbytes: Sequence[int]) -> str:
    """Which model to use on a machine with so much free GPU memory, in a sentence."""
    best = recommended(gpu_nbytes)
    if best is not None:
        free = binary_bytes(max(gpu_nbytes))
        return f"For this machine ({free} free on a GPU): {best.hub_id}, good for {best.good_for}."
    if gpu_nbytes:
        return f"For this machine ({binary_bytes(max(gpu_nbytes))} free on a GPU): bundled, as no other model fits."
    return (
        "For this machine (no GPU): bundled, as larger ones take seconds a step on a processor; "
        f"{RELEASED[1].hub_id} where that is fast enough."
    )
