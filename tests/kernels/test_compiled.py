"""The kernel as it is compiled for GPUs, none of which has to be there."""

import os
import subprocess
import sys

import pytest

COMPILING = """
import sys, warnings
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from engine.models.quantized.triton_kernel import COLUMNS, INPUTS, grouped_product

target = GPUTarget("cuda", int(sys.argv[1]), 32)
for layout in ("int4", "int4 symmetric", "nvfp4"):
    in_4_bit = layout == "nvfp4"
    for experts, height in ((128, 16), (0, 64)):
        chosen = {
            "EXPERTS": experts, "GROUP": 16 if in_4_bit else 32, "NVFP4": in_4_bit, "ZEROS": layout == "int4",
            "WHOLE": experts > 0,
            "PRODUCT": tl.bfloat16, "BM": height, "BN": COLUMNS, "BK": INPUTS, "SLOTS": 128,
        }
        given = {
            "states": "*bf16", "codes": "*u8", "scales": "*u8" if in_4_bit else "*bf16", "zeros": "*u8",
            "multipliers": "*fp32", "sizes": "*i64", "out": "*bf16",
            "rows": "i32", "outputs": "i32", "inputs": "i32", "parts": "i32",
        }
        signature = {name: given.get(name, "constexpr") for name in grouped_product.arg_names}
        # As a call is compiled: torch aligns what it allocates, and sizes of the released shape are multiples.
        aligned = {name for name, of in given.items() if of[0] == "*"} | {"outputs", "inputs"}
        places = {(at,): [["tt.divisibility", 16]] for at, name in enumerate(signature) if name in aligned}
        made = triton.compile(
            ASTSource(grouped_product, signature=signature, constexprs=chosen, attrs=places), target=target,
            options={"enable_fp_fusion": True},
        )
        # Matrix instructions, in bfloat16; else it is all done number by number.
        assert "mma" in made.asm["ptx"] and "bf16.bf16" in made.asm["ptx"], layout
        assert made.asm["cubin"]
        # What all of these GPUs have for a block.
        assert made.metadata.shared <= 48 << 10
"""


@pytest.mark.parametrize("capability", [80, 89, 90])
def test_the_kernel_compiles(capability: int):
    """In a process of its own, as the interpreter takes the compiler's place."""
    alone = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILING, str(capability)], env=alone, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
