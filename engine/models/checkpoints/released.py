"""Released checkpoints that fill gaps: their sizes, their uses, and which one suits a machine.

Parameters and bytes follow from the published sizes (config.json; weights in bfloat16, unless files are smaller).
Imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from engine.common.messages import MemoryPlan
from engine.common.sizes import binary_bytes
from engine.models.checkpoints.working import CONTEXT, Sizes, context_for, planned

_BYTES = 2
"""Bytes of a parameter in bfloat16."""
_INT4_BYTES = 4.75 / 8
"""Bytes of a packed parameter: groups of 32 have a scale in bfloat16 and a zero in a byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """One checkpoint on the Hugging Face Hub."""

    hub_id: str
    parameters: int
    sizes: Sizes
    licence: str
    good_for: str
    packed_nbytes: int = 0
    """Bytes on disk, where not all is in bfloat16."""
    layer_parameters: int = 0
    """Number of parameters that `dg-lsp quantize` packs; 0: it can't."""

    @property
    def download_nbytes(self) -> int:
        """Bytes on disk, about those of the weights in memory."""
        return self.packed_nbytes or self.parameters * _BYTES

    @property
    def memory(self) -> MemoryPlan:
        """Memory to run it as it is, on a GPU."""
        return planned(self.download_nbytes, self.sizes)

    @property
    def quantized_memory(self) -> MemoryPlan:
        """Memory to run it in 4 bit, after `dg-lsp quantize`."""
        rest = self.parameters - self.layer_parameters
        return planned(int(self.layer_parameters * _INT4_BYTES) + rest * _BYTES, self.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """What to run on a card with enough memory."""

    released: Released
    quantized: bool = False
    """Whether `dg-lsp quantize` is applied after the download."""

    @property
    def memory(self) -> MemoryPlan:
        return self.released.quantized_memory if self.quantized else self.released.memory

    @property
    def summary(self) -> str:
        """The model, the reason, and the commands."""
        hub_id, own = self.released.hub_id, self.released.hub_id.rpartition("/")[2] + "-int4"
        pull = f"`dg-lsp pull {hub_id}`"
        if self.quantized:
            pull += f", then `dg-lsp quantize {hub_id} --out {own}` and `--model {own}`"
        in_4_bit = " in 4 bit" if self.quantized else ""
        return f"{hub_id}{in_4_bit}, good for {self.released.good_for}: {self.memory.summary()}. {pull}"


_flagship = partial(
    Released,
    parameters=25_800_000_000,
    sizes=Sizes(vocabulary=262_144, hidden=2816, token_features=2 * (25 * 2048 + 5 * 1024)),
    licence="see its card",
)
_dream = partial(
    Released, parameters=7_615_616_512, sizes=Sizes(vocabulary=152_064, hidden=3584, token_features=2 * 28 * 512)
)
_DREAM_LAYERS = 28 * (3584 * (2 * 3584 + 2 * 512) + 3 * 3584 * 18_944)
DREAMON = _dream(
    hub_id="Dream-org/DreamOn-v0-7B",
    licence="Apache-2.0",
    good_for="filling gaps: the best single lines",
    layer_parameters=_DREAM_LAYERS,
)
OPEN_DCODER = Released(
    hub_id="fredzzp/open-dcoder-0.5B",
    parameters=494_032_768,
    sizes=Sizes(vocabulary=151_936, hidden=896, token_features=2 * 24 * 128),
    licence="see its card",
    good_for="small cards, and patient processors",
)
NVFP4 = _flagship(
    hub_id="nvidia/diffusiongemma-26B-A4B-it-NVFP4",
    good_for="instructions, long gaps, rewriting, on one card",
    packed_nbytes=18_900_000_000,
)
RELEASED = (
    DREAMON,
    OPEN_DCODER,
    NVFP4,
    _flagship(
        hub_id="cyankiwi/diffusiongemma-26B-A4B-it-AWQ-INT4",
        good_for="the same in int4, for which processors have a product as well",
        packed_nbytes=17_200_000_000,
    ),
    _flagship(
        hub_id="RedHatAI/diffusiongemma-26B-A4B-it-NVFP4",
        good_for="the same, dense blocks in 4 bit as well",
        # Computed: 23.4 B weights with a scale a group of 16, the rest in bfloat16.
        packed_nbytes=18_000_000_000,
    ),
    _flagship(
        hub_id="google/diffusiongemma-26B-A4B-it",
        good_for="the same in full, and what `dg-lsp quantize` begins with",
    ),
    _dream(
        hub_id="Dream-org/Dream-Coder-v0-Base-7B",
        licence="Apache-2.0",
        good_for="filling gaps of a known kind, after `python -m engine.cli.calibrate`",
    ),
    _dream(
        hub_id="Dream-org/Dream-Coder-v0-Instruct-7B",
        licence="Apache-2.0",
        good_for="the same; its chat is not used",
    ),
    _dream(
        hub_id="apple/DiffuCoder-7B-Base",
        licence="Apple AMLR: research only",
        good_for="comparing",
    ),
    Released(
        hub_id="GSAI-ML/LLaDA-8B-Base",
        parameters=8_015_581_184,
        sizes=Sizes(vocabulary=126_464, hidden=4096, token_features=2 * 32 * 4096),
        licence="MIT",
        good_for="prose and comments; little code",
    ),
)
"""Best first for filling gaps in code."""
PRESETS = (
    Preset(released=NVFP4),
    Preset(released=DREAMON, quantized=True),
    Preset(released=OPEN_DCODER),
)
"""The largest first: of cards with 24 GB and more, of those with 8 to 16, of smaller ones."""


def known(hub_id: str) -> Released | None:
    return next((each for each in RELEASED if each.hub_id.lower() == hub_id.lower()), None)


def recommended(gpu_nbytes: Sequence[int]) -> Preset | None:
    """The best one that fits into the free memory of a GPU; None: there is none, or no GPU."""
    most = max(gpu_nbytes, default=0)
    return next((each for each in PRESETS if each.memory.total <= most), None)


def advice(gpu_nbytes: Sequence[int]) -> str:
    """The model for a machine with so much free GPU memory, the reason, and the commands."""
    best, most = recommended(gpu_nbytes), max(gpu_nbytes, default=0)
    if best is not None:
        context = context_for(best.released.sizes, most - best.memory.total)
        longer = f" With contexts of {context:,} tokens." if context > CONTEXT else ""
        return f"For this machine ({binary_bytes(most)} free on a GPU): {best.summary}.{longer}"
    if gpu_nbytes:
        return f"For this machine ({binary_bytes(most)} free on a GPU): one of the coders above; nothing else fits."
    return (
        "For this machine (no GPU): one of the coders above; of the others, which take seconds a step on a processor, "
        f"{OPEN_DCODER.hub_id} is the quickest."
    )
