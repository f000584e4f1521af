"""Which numbers a processor multiplies: chosen by what it has, never by a clock.

Two processes of one machine have to choose alike, as other formats round otherwise: an engine and what is held against
it, or two engines in turn. A measurement is another one each time that something runs beside; kept in a file, it keeps
what the busiest moment said, and is another one again where the file can't be written.

What each kind gains was measured beforehand (docs/lab-notes.md, 2026-11-25 and 2026-11-26). A kind that never was has
what can't be slow: float32, as torch multiplies it. `DG_LSP_BFLOAT16` overrules.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from engine.common.errors import BadInput

BFLOAT16 = "DG_LSP_BFLOAT16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Formats that are no slower on a processor than float32 by torch's own products."""

    bfloat16: bool = False
    """Products in bfloat16."""
    ordered_float32: bool = False
    """Products in float32 with a weight in oneDNN's order."""
    attention: bool = False
    """Attention in bfloat16."""
    int8: bool = False
    """Products of 8-bit integers."""
    int8_largest: int = 127
    """The largest code of such a weight: one bit less where products are added in pairs in 16 bits (AVX2)."""
    reason: str = ""

    @property
    def int8_before_float32(self) -> bool:
        """Whether many rows are multiplied in 8 bits, not in float32, with weights that came in bfloat16. Pretrained
        coders are always kept in 8 bits."""
        return self.int8 and not self.bfloat16


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """What the choice depends on; of other designs (Arm, Apple) nothing is known."""

    intel: bool = False
    avx2: bool = False
    avx512: bool = False
    bfloat16: bool = False
    """Multiplies vectors in bfloat16 (AVX512-BF16)."""
    tiles: bool = False
    """Multiplies matrices in bfloat16 (AMX)."""
    vnni: bool = False
    """Multiplies vectors of 8-bit integers and adds them in 32 bits (AVX512-VNNI, AVX-VNNI)."""


def formats() -> Formats:
    """The formats of this processor. Raises BadInput for an environment variable that is neither on nor off."""
    return _chosen(os.environ.get(BFLOAT16, ""))


def formats_of(processor: Processor) -> Formats:
    """The formats of a kind of processor, as measured."""
    return replace(_floats_of(processor), int8=processor.avx2, int8_largest=127 if processor.vnni else 63)


def _floats_of(processor: Processor) -> Formats:
    if processor.tiles:
        return Formats(bfloat16=True, attention=True, reason="its units are AMX")
    if processor.intel and processor.bfloat16:
        return Formats(reason="AVX512-BF16 without AMX is slower in bfloat16")
    if processor.avx512 and not processor.intel:
        # MKL leaves AVX-512 unused there. Attention in bfloat16 takes 1.7 times as long.
        reason = f"its units are {'AVX512-BF16' if processor.bfloat16 else 'AVX-512'}"
        return Formats(bfloat16=processor.bfloat16, ordered_float32=True, reason=reason)
    return Formats(reason="no units for bfloat16 that are known to be fast")


def described() -> str:
    """The formats at hand in words."""
    found = formats()
    bits = "" if found.int8_largest == 127 else " of 7 bits, as sums of more would overflow"
    whose = "many rows, and a coder's weights," if found.int8_before_float32 else "a coder's weights"
    whole = f"; {whose} in int8{bits}" if found.int8 else ""
    return f"{'bfloat16' if found.bfloat16 else 'float32'}: {found.reason}{whole}"


@cache
def onednn_multiplies(dtype: torch.dtype) -> bool:
    """Whether torch has oneDNN's products in a format on this processor."""
    if not torch.backends.mkldnn.is_available():
        return False
    supported: Any = torch.ops.mkldnn._is_mkldnn_bf16_supported
    return dtype == torch.float32 or (dtype == torch.bfloat16 and supported())


@cache
def _chosen(overruled: str) -> Formats:
    found = formats_of(_this_processor())
    if not overruled:
        return found
    if overruled not in ("on", "off"):
        raise BadInput(f"{BFLOAT16} is {overruled!r}: set it to on or off, or to nothing.")
    narrow = overruled == "on"
    return replace(found, bfloat16=narrow, attention=narrow, reason=f"{BFLOAT16}={overruled}")


def _this_processor() -> Processor:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return Processor()
    has: Any = torch.cpu
    about = _about()
    narrow = has._is_avx512_bf16_supported()
    return Processor(
        intel="GenuineIntel" in about,
        avx2=has._is_avx2_supported(),
        avx512=has._is_avx512_supported(),
        bfloat16=narrow,
        tiles=narrow and has._is_amx_tile_supported(),
        vnni=(has._is_avx512_supported() and has._is_vnni_supported()) or "avx_vnni" in about.split(),
    )


def _about() -> str:
    """What the system says of its processor."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not on Linux
        return platform.processor()
