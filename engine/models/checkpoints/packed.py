"""Weights in 4 bit on disk. config.json and the headers alone tell which of three layouts it is; anything else is
refused before more is read.

Sources: modelopt's and compressed-tensors' exporters (`nvfp4-pack-quantized`, `pack-quantized`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import TAKE_INSTEAD, Files, TensorHeader

INT4_GROUP, NVFP4_GROUP = 32, 16
"""Numbers in a row that share a scale."""
PartRole = Literal["codes", "scales", "zeros", "multiplier", "divisor"]
"""What a stored tensor is for: two weights a byte, the first one in its lower half; a scale a group; the code of zero a
group; one factor, or one divisor, for all scales."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPart:
    """One of the tensors that hold a packed weight [N, K]."""

    name: str
    """Its name after that of the layer."""
    dtypes: tuple[str, ...]
    shape: Callable[[int, int], tuple[int, ...]] | None = None
    """Its shape by N and K; None: a single number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedLayout:
    """How all packed weights of a checkpoint are stored."""

    dtype: Literal["INT4", "NVFP4"]
    per_word: int
    """Weights in one number of the codes."""
    group: int
    parts: Mapping[PartRole, StoredPart]


_FLOATS = ("BF16", "F16", "F32")
_PLAIN = (*_FLOATS, "F64")
_UNREAD = ("weight_shape", "input_scale", "input_global_scale", "k_scale", "v_scale")
"""Tensors that are not needed: shapes are known, and activations are not quantized here."""
_EXPERT = re.compile(r"(.+\.experts)\.(0|[1-9][0-9]*)\.((?:gate|up|down)_proj)\.weight")
_FUSED = {"gate_proj": "gate_up_proj", "up_proj": "gate_up_proj", "down_proj": "down_proj"}
"""How transformers stacks experts, the rows of the gate first."""


def _nvfp4(codes: str, last: str, role: PartRole) -> PackedLayout:
    return PackedLayout(
        dtype="NVFP4",
        per_word=2,
        group=NVFP4_GROUP,
        parts={
            "codes": StoredPart(name=codes, dtypes=("U8",), shape=lambda n, k: (n, k // 2)),
            "scales": StoredPart(name="weight_scale", dtypes=("F8_E4M3",), shape=lambda n, k: (n, k // NVFP4_GROUP)),
            role: StoredPart(name=last, dtypes=("F32",)),
        },
    )


def _int4(*, symmetric: bool) -> PackedLayout:
    parts: dict[PartRole, StoredPart] = {
        "codes": StoredPart(name="weight_packed", dtypes=("I32",), shape=lambda n, k: (n, k // 8)),
        "scales": StoredPart(name="weight_scale", dtypes=_FLOATS, shape=lambda n, k: (n, k // INT4_GROUP)),
    }
    if not symmetric:
        parts["zeros"] = StoredPart(
            name="weight_zero_point", dtypes=("I32",), shape=lambda n, k: (-(-n // 8), k // INT4_GROUP)
        )
    return PackedLayout(dtype="INT4", per_word=8, group=INT4_GROUP, parts=parts)


def packed(files: Files, tensors: list[TensorHeader]) -> list[TensorHeader]:
    """The tensors of a module: the parts of a packed weight as one tensor, and single experts as two stacks a layer.
    Raises ModelError for another layout, and for tensors that do not fit it."""
    layout = layout_of(files.config, files.name)
    return tensors if layout is None else _stacked(_gathered(layout, tensors, files.name), files.name)


def layout_of(config: Mapping[str, Any], name: str) -> PackedLayout | None:
    """The layout of a checkpoint's weights by its config.json; None: not packed. Raises ModelError for another one."""
    said = config.get("quantization_config")
    if said is not None and "quant_method" in said:
        return _described(said, name)
    # MLX writes its own word for it, and no method.
    if said is not None or "quantization" in config:
        raise _refused(name, "MLX does it, or in another way that its config.json does not name")
    return None


def check_formats(tensors: Sequence[TensorHeader], name: str) -> None:
    """Check number formats. Raises ModelError for a tensor that is neither packed nor of plain numbers."""
    for tensor in tensors:
        if not tensor.pieces and tensor.dtype not in _PLAIN:
            raise ModelError(
                f"{tensor.name} of {name} is stored as {tensor.dtype}, which dg-lsp can't read: {TAKE_INSTEAD}."
            )


def _described(said: Mapping[str, Any], name: str) -> PackedLayout:
    method = said.get("quant_method")
    groups = cast("list[dict[str, Any]]", list((said.get("config_groups") or {}).values()))
    if method == "modelopt":
        _expect(name, "modelopt", {"quant_algo": said.get("quant_algo")}, {"quant_algo": "NVFP4"})
        for group in groups:
            _expect(name, "modelopt NVFP4", group["weights"], {"num_bits": 4, "group_size": NVFP4_GROUP})
        return _nvfp4("weight", "weight_scale_2", "multiplier")
    if method != "compressed-tensors":
        raise _refused(name, repr(method)[:80])
    for field in ("sparsity_config", "transform_config"):
        if said.get(field):
            raise _refused(name, f"compressed-tensors with a {field}")
    formats = {str(group.get("format") or said.get("format"))[:80] for group in groups}
    weights = [group["weights"] for group in groups]
    shared = f"compressed-tensors {' and '.join(sorted(formats)) or said.get('format')}"
    if formats == {"nvfp4-pack-quantized"}:
        for each in weights:
            _expect(name, shared, each, {"num_bits": 4, "type": "float", "group_size": NVFP4_GROUP, "symmetric": True})
        return _nvfp4("weight_packed", "weight_global_scale", "divisor")
    if formats == {"pack-quantized"}:
        symmetric = weights[0].get("symmetric", True)
        for each in weights:
            expected = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": INT4_GROUP}
            _expect(name, shared, each, {**expected, "symmetric": symmetric})
        return _int4(symmetric=symmetric)
    raise _refused(name, shared)


def _expect(name: str, method: str, said: Mapping[str, Any], expected: Mapping[str, object]) -> None:
    for field, value in expected.items():
        found = said.get(field, True if field == "symmetric" else None)
        if found != value:
            raise _refused(name, f"{method} with {field} {str(found)[:80]!r}")


def _refused(name: str, how: str) -> ModelError:
    return ModelError(f"The weights of {name} are quantized as {how}, which dg-lsp can't read: {TAKE_INSTEAD}.")


def _gathered(layout: PackedLayout, tensors: Sequence[TensorHeader], name: str) -> list[TensorHeader]:
    by_name = {tensor.name: tensor for tensor in tensors if tensor.name.rpartition(".")[2] not in _UNREAD}
    # A weight of modelopt's is named as one that is not packed.
    marks = {part.name for part in layout.parts.values()} - {"weight"}
    stems = dict.fromkeys(stem for stem, _, last in (each.rpartition(".") for each in by_name) if last in marks)
    found: list[TensorHeader] = []
    for stem in stems:
        piece: dict[str, TensorHeader] = {}
        for role, part in layout.parts.items():
            stored = by_name.pop(f"{stem}.{part.name}", None)
            if stored is None:
                raise ModelError(f"{name} lacks {stem}.{part.name}: pull or copy it again.")
            piece[role] = stored
        found.append(_gathered_one(layout, stem, piece, name))
    return [*by_name.values(), *found]


def _gathered_one(layout: PackedLayout, stem: str, piece: Mapping[str, TensorHeader], name: str) -> TensorHeader:
    codes = piece["codes"]
    rows, words = codes.shape if len(codes.shape) == 2 else (0, 0)
    inputs = words * layout.per_word
    for role, part in layout.parts.items():
        stored = piece[role]
        fits = stored.shape in ((), (1,)) if part.shape is None else stored.shape == part.shape(rows, inputs)
        if stored.dtype not in part.dtypes or not fits or inputs % layout.group:
            raise ModelError(
                f"{stored.name} of {name} is {stored.dtype} {stored.shape}, which does not fit weights in "
                f"{layout.dtype} in groups of {layout.group}: {TAKE_INSTEAD}."
            )
    return TensorHeader(
        name=f"{stem}.weight",
        dtype=layout.dtype,
        shape=(rows, inputs),
        file=codes.file,
        offset=codes.offset,
        pieces=(piece,),
    )


def _stacked(tensors: Sequence[TensorHeader], name: str) -> list[TensorHeader]:
    experts: dict[tuple[str, str], dict[tuple[int, str], TensorHeader]] = {}
    others: list[TensorHeader] = []
    for tensor in tensors:
        match = _EXPERT.fullmatch(tensor.name)
        if match and tensor.pieces:
            experts.setdefault((match[1], _FUSED[match[3]]), {})[int(match[2]), match[3]] = tensor
        else:
            others.append(tensor)
    for (base, fused), found in experts.items():
        own = [part for part, into in _FUSED.items() if into == fused]
        count = len({number for number, _ in found})
        keys = [(number, part) for number in range(count) for part in own]
        for number, part in keys:
            if (number, part) not in found:
                raise ModelError(f"{name} lacks {base}.{number}.{part}.weight in 4 bit: pull or copy it again.")
        each = [found[key] for key in keys]
        first = each[0]
        for other in each:
            if other.shape != first.shape:
                raise ModelError(
                    f"{other.name} of {name} is {other.shape}, and {first.name} is {first.shape}: "
                    "pull or copy the model again."
                )
        rows, inputs = first.shape
        others.append(
            replace(
                first,
                name=f"{base}.{fused}",
                shape=(count, len(own) * rows, inputs),
                pieces=tuple(piece for other in each for piece in other.pieces),
            )
        )
    return others
