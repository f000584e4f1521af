"""Which numbers a processor multiplies, whatever else it has to do."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from engine.common.errors import BadInput
from engine.models import formats, products
from engine.models.formats import BFLOAT16, Formats, Processor, formats_of
from engine.models.gemma.network import GELU
from engine.models.masked.network import SILU
from engine.models.network import Activation

CHOSEN = """
import time
import torch
from engine.models.products import prefers_bfloat16, reordered

def slowed(product, dtype, at):
    def slow(*operands, **named):
        end_s = time.thread_time() + 0.005 * (operands[at].dtype == dtype)
        while time.thread_time() < end_s:
            pass
        return product(*operands, **named)
    return slow

SLOW
weight = reordered(torch.ones(64, 64))
print(prefers_bfloat16("cpu"), None if weight is None else (weight.dtype, weight.layout))
"""
SLOW = """
torch.mm = slowed(torch.mm, torch.{0}, 0)
torch.nn.functional.linear = slowed(torch.nn.functional.linear, torch.{0}, 1)
"""


def test_nothing_is_chosen_by_a_clock():
    """As if something else took the processor while a format is tried: another one each time."""
    programs = [CHOSEN.replace("SLOW", slow) for slow in ("", SLOW.format("float32"), SLOW.format("bfloat16"))]
    said = [
        subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, check=True, timeout=240).stdout
        for each in programs
    ]
    assert said == [said[0]] * 3


@pytest.mark.parametrize(
    ("processor", "bfloat16", "attention", "ordered"),
    [
        # Measured: docs/lab-notes.md, 2026-11-25 and 2026-11-26.
        pytest.param(Processor(intel=True, avx512=True, bfloat16=True, tiles=True), True, True, False, id="AMX"),
        pytest.param(Processor(intel=True, avx512=True, bfloat16=True), False, False, False, id="Xeon without AMX"),
        pytest.param(Processor(avx512=True, bfloat16=True), True, False, True, id="Zen 4 and 5"),
        pytest.param(Processor(), False, False, False, id="Zen 3"),
        # Never: as torch does it.
        pytest.param(Processor(intel=True, avx512=True), False, False, False, id="Skylake"),
        pytest.param(Processor(intel=True), False, False, False, id="Haswell"),
    ],
)
def test_each_kind_of_processor_has_what_is_fast_there(
    processor: Processor, bfloat16: bool, attention: bool, ordered: bool
):
    found = formats_of(processor)
    assert (found.bfloat16, found.attention, found.ordered_float32) == (bfloat16, attention, ordered)
    assert found.reason


@pytest.mark.parametrize(
    ("processor", "int8", "largest"),
    [
        pytest.param(Processor(intel=True, avx2=True, avx512=True, vnni=True), True, 127, id="AVX512-VNNI"),
        pytest.param(Processor(intel=True, avx2=True, vnni=True), True, 127, id="AVX-VNNI"),
        pytest.param(Processor(intel=True, avx2=True, avx512=True), True, 63, id="Skylake"),
        pytest.param(Processor(avx2=True), True, 63, id="Zen 3"),
        pytest.param(Processor(), False, 63, id="Arm"),
    ],
)
def test_a_coder_has_as_many_bits_as_no_sum_of_two_products_overflows_with(
    processor: Processor, int8: bool, largest: int
):
    found = formats_of(processor)
    assert found.int8 == int8
    if int8:
        assert found.int8_largest == largest


@pytest.mark.parametrize("machine", ["aarch64", "arm64", "riscv64"])
def test_what_nobody_measured_is_multiplied_as_torch_does(machine: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("platform.machine", lambda: machine)
    found = formats_of(formats._this_processor())
    assert (found.bfloat16, found.attention, found.ordered_float32) == (False, False, False)


def test_the_environment_overrules(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(BFLOAT16, raising=False)
    own = formats.formats()
    for said, narrow in (("on", True), ("off", False)):
        monkeypatch.setenv(BFLOAT16, said)
        found = formats.formats()
        assert (found.bfloat16, found.attention, found.ordered_float32) == (narrow, narrow, own.ordered_float32)
        assert products.prefers_bfloat16("cpu") == narrow
        whose = "a coder's weights" if narrow else "many rows, and a coder's weights,"
        bits = "" if own.int8_largest == 127 else " of 7 bits, as sums of more would overflow"
        whole = f"; {whose} in int8{bits}" if own.int8 else ""
        assert formats.described() == f"{'bfloat16' if narrow else 'float32'}: {BFLOAT16}={said}{whole}"
        weight = products.reordered(torch.ones(16, 16))
        assert (weight is not None and weight.dtype == torch.bfloat16) == narrow
    monkeypatch.setenv(BFLOAT16, "")
    assert formats.formats() == own
    monkeypatch.setenv(BFLOAT16, "yes")
    with pytest.raises(BadInput, match="DG_LSP_BFLOAT16 is 'yes': set it to on or off, or to nothing"):
        formats.formats()


@pytest.mark.parametrize("units", [True, False], ids=["oneDNN's", "without units"])
@pytest.mark.parametrize("activation", [GELU, SILU], ids=["gelu", "silu"])
def test_bfloat16_that_is_forced_rounds_as_units_for_it_do(
    units: bool, activation: Activation, monkeypatch: pytest.MonkeyPatch
):
    """States and answers are rounded, sums are not: half a digit of the 8 that bfloat16 has, before and after."""
    if units and not formats.onednn_multiplies(torch.bfloat16):
        pytest.skip("oneDNN has no products in bfloat16 on this processor")
    monkeypatch.setattr(products, "onednn_multiplies", lambda dtype: units)
    monkeypatch.setattr(formats, "_chosen", lambda overruled: Formats(bfloat16=True))
    drawn = torch.Generator().manual_seed(0)
    states, gate, up, down = (torch.randn(32, 32, generator=drawn).bfloat16() for _ in range(4))
    held = [products.reordered(each.float()) for each in (gate, up, down)]
    assert all(each is not None and each.dtype == torch.bfloat16 for each in held)
    found = products.gated(states.float(), *(each for each in held if each is not None), activation.fused)
    inner = activation.plain(F.linear(states.double(), gate.double())).bfloat16()
    inner *= F.linear(states.double(), up.double()).bfloat16()
    exact = F.linear(inner.double(), down.double())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=2**-6 * float(exact.abs().max()))
