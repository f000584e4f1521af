"""Writes a model's weights as int4 into a directory, in the format `pack-quantized` of compressed-tensors.

Only some rows of one matrix are in memory at a time. Each file appears when it is complete, so an interruption costs
one layer. config.json comes last: an incomplete directory can't be loaded.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.common.errors import BadInput, ModelError
from engine.common.files import replacing, writing
from engine.common.sizes import decimal_bytes
from engine.models.checkpoints.directory import (
    INDEX_FILE,
    Checkpoint,
    TensorHeader,
    loading,
    read_header,
    read_json_if_there,
    weight_files,
)
from engine.models.checkpoints.gguf import BLOCKS
from engine.models.checkpoints.packed import INT4_GROUP
from engine.models.quantized.int4 import quantize_int4, stored_int4
from engine.models.tokenizer import read_tokenizer
from engine.models.weights import OnPercent, matrices, read_numbers, row_blocks

_MATRIX = re.compile(r"(.+\.)(\w+_proj)(?:\.weight)?")
"""Matrices of attention, dense blocks and experts; a router's name differs."""
_HALVES = {"gate_up_proj": ("gate_proj", "up_proj")}
_ROWS = 64
"""Rows that are quantized at once: a multiple of eight, whose zeros fill one word."""
_CHUNK_NBYTES = 16 << 20
_STATE = "quantizing.json"
"""The file in an unfinished directory."""
PARTS = {
    "weight_packed": ("I32", 4),
    "weight_scale": ("BF16", 2),
    "weight_zero_point": ("I32", 4),
    "weight_shape": ("I64", 8),
}
"""The parts of a stored matrix in this order, with number formats and bytes."""
_BESIDE = (".json", ".jinja", ".txt", ".model")
"""Small files of a model."""
_CONFIG: dict[str, Any] = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "quantization_status": "compressed",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {
                "num_bits": 4,
                "type": "int",
                "strategy": "group",
                "group_size": INT4_GROUP,
                "symmetric": False,
                "dynamic": False,
            },
            "input_activations": None,
            "output_activations": None,
        }
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A tensor of the model and the matrices made of it, by name; none: it is copied."""

    header: TensorHeader
    matrices: tuple[tuple[str, TensorHeader], ...] = ()


def quantize(checkpoint: Checkpoint, out: Path, on_percent: OnPercent | None = None) -> dict[str, float]:
    """Write `checkpoint` into the directory `out`, going on where an earlier run was cut off. Returns the relative
    error of the weights by kind of matrix, against what the files hold: a GGUF's blocks lost something before.

    Raises ModelError for weights that are packed already or are no numbers, BadInput for a directory with other files,
    or one that can't be written or is full.
    """
    if any(tensor.pieces for tensor in checkpoint.tensors):
        raise ModelError(f"{checkpoint.name} is in 4 bit already: name the model in bfloat16.")
    if checkpoint.fields and not checkpoint.small:
        raise ModelError(f"{checkpoint.name} is a coder's GGUF, which is run as it is: name it to --model.")
    # What is read within has `loading` around it.
    with writing(out, "make room on its disk and run the same command again, or name another directory", BadInput):
        done = _begun(checkpoint, out)
        files = _planned(checkpoint)
        left = [sources for name, sources in files.items() if name not in done["lost"]]
        needed = sum(nbytes for sources in left for *_, nbytes in _becoming(sources))
        if needed > (free := shutil.disk_usage(out).free):
            raise BadInput(
                f"{out} needs {decimal_bytes(needed)} of disk, and {decimal_bytes(free)} are free: free some, or name "
                "another directory."
            )
        # Without it what is cut in the first file would be something else.
        _keep(out, done)
        for at, (name, sources) in enumerate(files.items(), start=1):
            if name not in done["lost"]:
                with replacing(out / name) as draft:
                    lost = _write(draft, sources, checkpoint.name)
                done["lost"][name] = lost
                _keep(out, done)
            if on_percent is not None:
                on_percent(100 * at / len(files))
        _finish(checkpoint, out, list(files))
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for lost in done["lost"].values():
        for kind, numbers in lost.items():
            sums[kind] = [before + more for before, more in zip(sums[kind], numbers, strict=True)]
    return {kind: (squares / there) ** 0.5 for kind, (squares, there) in sorted(sums.items()) if there}


def _begun(checkpoint: Checkpoint, out: Path) -> dict[str, Any]:
    """What `out` is made of, and for each finished file the sums of squared errors and of squares, by kind of
    matrix."""
    stats = [(file.name, file.stat()) for file in _weight_files(checkpoint)]
    made_of = [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out} can't be made ({error.strerror}): name another directory.") from None
    state = read_json_if_there(out / _STATE, str(out))
    if state.get("made_of") != made_of and any(out.iterdir()):
        raise BadInput(f"{out} holds something else: name a directory that is empty, or not there yet.")
    return state or {"made_of": made_of, "lost": {}}


def _weight_files(checkpoint: Checkpoint) -> list[Path]:
    if checkpoint.fields:
        return sorted({tensor.file for tensor in checkpoint.tensors})
    return weight_files(checkpoint.path, checkpoint.name)


def _keep(out: Path, done: dict[str, Any]) -> None:
    with replacing(out / _STATE) as draft:
        draft.write_text(json.dumps(done))


def _planned(checkpoint: Checkpoint) -> dict[str, list[Source]]:
    """Sources by the file they go to: one for tensors in no layer, then one a layer."""
    loaded = {(tensor.file, tensor.offset) for tensor in checkpoint.tensors}
    files = [] if checkpoint.fields else _weight_files(checkpoint)
    stored = [tensor for file in files for tensor in read_header(file)]
    # What is not loaded here, parts for pictures above all, may serve other programs.
    others = [Source(header=tensor) for tensor in stored if (tensor.file, tensor.offset) not in loaded]
    layers: dict[int, list[Source]] = defaultdict(list)
    for tensor in checkpoint.tensors:
        source = Source(header=tensor, matrices=tuple(_matrices(tensor)))
        (others if tensor.layer is None else layers[tensor.layer]).append(source)
    parts = [others, *(layers[each] for each in sorted(layers))]
    return {f"model-{at:05}-of-{len(parts):05}.safetensors": each for at, each in enumerate(parts, start=1)}


def _matrices(tensor: TensorHeader) -> Iterator[tuple[str, TensorHeader]]:
    match = _MATRIX.fullmatch(tensor.name)
    if match is None or tensor.layer is None or len(tensor.shape) not in (2, 3) or not tensor.elements:
        return
    *experts, rows, inputs = tensor.shape
    prefix, kind = match.groups()
    own = _HALVES.get(kind, (kind,)) if experts else (kind,)
    rows //= len(own)
    if inputs % INT4_GROUP or rows % 8:
        return
    stems = [f"{prefix}{expert}." for expert in range(experts[0])] if experts else [prefix]
    names = [f"{stem}{part}" for stem in stems for part in own]
    yield from zip(names, matrices(tensor, len(own)), strict=True)


def _write(file: Path, sources: Sequence[Source], model: str) -> dict[str, list[float]]:
    """Write a safetensors file, tensor by tensor. Returns sums of squared errors and of squares, by kind of matrix."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, dtype, shape, nbytes in _becoming(sources):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + nbytes]}
        at += nbytes
    content = json.dumps(header).encode()
    content += b" " * (-len(content) % 8)
    lost: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    with file.open("wb") as stream:
        stream.write(len(content).to_bytes(8, "little") + content)
        for part in _contents(sources, lost, model):
            stream.write(part)
    return lost


def _contents(sources: Sequence[Source], lost: dict[str, list[float]], model: str) -> Iterator[bytes | memoryview]:
    """The bytes of the tensors to write, read from `model` one by one."""
    with loading(model):
        for source in sources:
            if not source.matrices:
                yield from _chunks(source.header)
            for name, matrix in source.matrices:
                kind = [part for part in name.rpartition(".layers.")[2].split(".") if not part.isdecimal()]
                yield from map(_bytes, _quantized(matrix, lost[".".join(kind)]).values())


def _bytes(numbers: Tensor) -> memoryview:
    own: Any = numbers.contiguous().view(torch.uint8).flatten().numpy()
    return memoryview(own)


def _becoming(sources: Sequence[Source]) -> Iterator[tuple[str, str, tuple[int, ...], int]]:
    """Names, formats, shapes and bytes of the tensors to write, in order."""
    for source in sources:
        if not source.matrices:
            own = source.header
            dtype, nbytes = ("BF16", 2 * own.elements) if _in_blocks(own) else (own.dtype, own.nbytes)
            yield own.name, dtype, own.shape, nbytes
        for name, matrix in source.matrices:
            rows, inputs = matrix.shape
            groups = inputs // INT4_GROUP
            shapes = ((rows, inputs // 8), (rows, groups), (rows // 8, groups), (2,))
            for (part, (dtype, itemsize)), shape in zip(PARTS.items(), shapes, strict=True):
                yield f"{name}.{part}", dtype, shape, math.prod(shape) * itemsize


def _quantized(matrix: TensorHeader, lost: list[float]) -> dict[str, Tensor]:
    rows, inputs = matrix.shape
    read: list[dict[str, Tensor]] = []
    for start in range(0, rows, _ROWS):
        own = min(_ROWS, rows - start)
        offset = matrix.offset + start * (matrix.nbytes // rows)
        weights = read_numbers(replace(matrix, shape=(own, inputs), offset=offset), torch.float32)
        there = float(weights.square().sum())
        if not there < torch.inf:
            raise ModelError(f"{matrix.name} in {matrix.file} holds what is no number: pull or copy the model again.")
        parts, squares = quantize_int4(weights)
        lost[0] += squares
        lost[1] += there
        read.append(parts)
    return stored_int4({name: torch.cat([each[name] for each in read]) for name in read[0]})


def _in_blocks(tensor: TensorHeader) -> bool:
    return BLOCKS.get(tensor.dtype, (1, 0))[0] > 1


def _chunks(tensor: TensorHeader) -> Iterator[bytes | memoryview]:
    if _in_blocks(tensor):
        for rows in row_blocks(tensor):
            yield _bytes(rows.bfloat16())
        return
    left = tensor.nbytes
    with tensor.file.open("rb") as source:
        source.seek(tensor.offset)
        while left:
            part = source.read(min(left, _CHUNK_NBYTES))
            if not part:
                raise ModelError(f"{tensor.file} is cut off: pull or copy the model again.")
            yield part
            left -= len(part)


def _finish(checkpoint: Checkpoint, out: Path, files: Sequence[str]) -> None:
    headers = [tensor for name in files for tensor in read_header(out / name)]
    size = {"total_size": sum(tensor.nbytes for tensor in headers)}
    (out / INDEX_FILE).write_text(
        json.dumps({"metadata": size, "weight_map": {tensor.name: tensor.file.name for tensor in headers}})
    )
    for name, said in checkpoint.small.items():
        (out / name).write_text(json.dumps(said, indent=2))
    if checkpoint.fields:
        (out / "tokenizer.json").write_text(read_tokenizer(checkpoint).to_str(), encoding="utf-8")
    for file in () if checkpoint.fields else checkpoint.path.iterdir():
        if file.is_file() and file.suffix in _BESIDE and file.name not in (INDEX_FILE, "config.json"):
            with loading(checkpoint.name):
                content = file.read_bytes()
            (out / file.name).write_bytes(content)
    named = (tensor.name.rpartition(".") for tensor in headers if len(tensor.shape) == 2)
    ignored = {"lm_head", *(module for module, _, own in named if own == "weight")}
    config = {**checkpoint.config, "quantization_config": {**_CONFIG, "ignore": sorted(ignored)}}
    with replacing(out / "config.json") as draft:
        draft.write_text(json.dumps(config, indent=2))
    (out / _STATE).unlink()
