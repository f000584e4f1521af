"""A model directory as it lies on disk: its small files, the headers of its big ones, whether it is whole."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from msgspec import Meta
from safetensors import SafetensorError, safe_open

from engine.common.errors import BadInput, EngineError, ModelError, is_out_of_memory
from engine.common.files import read_regular
from engine.models.checkpoints.working import Sizes

_log = logging.getLogger(__name__)

Size = Annotated[int, Meta(ge=1, le=1 << 40)]
Positive = Annotated[float, Meta(gt=0, le=1e12)]
"""Numbers of a file that something is computed with: no bool, no string, no NaN."""
LengthStrategy = Literal["asked", "slack", "discover", "expand", "calibrated", "causal"]
"""How the width of a gap is found: see engine.fill.lengths."""
METADATA_FILE = "dg_lsp.json"
"""What the authors of a checkpoint tell dg-lsp about it beyond config.json; released checkpoints have none."""
INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
TAKE_INSTEAD = (
    "take weights in bfloat16, or in 4 bit as NVFP4 (modelopt, compressed-tensors) or as int4 in groups of 32 "
    "(compressed-tensors)"
)
"""What to do about weights in a format that can't be read."""
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")
_MOST_JSON_NBYTES = 256 << 20
"""The largest released tokenizers have 35 MB."""
_PACKED_BITS = {"INT4": 5.0, "NVFP4": 4.5}
"""Of a packed weight at most, its share of scales and zero points included."""
_MATRIX = re.compile(r"\.layers\..+_proj\.weight$")
"""Of attention and dense blocks."""
_KEYS = ".k_proj.weight"
_TABLE = "embed_tokens.weight"
_LAYER = re.compile(r"\.layers\.([0-9]+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorHeader:
    name: str
    dtype: str
    """As safetensors names it: "BF16", "F32"; of a packed one, how it is packed: "INT4", "NVFP4"; of a GGUF, the type
    of its blocks: "Q4_K"."""
    shape: tuple[int, ...]
    file: Path = Path()
    offset: int = 0
    """Of its first byte in the file."""
    nbytes: int = 0
    """As it is stored; of a packed one, nothing by itself."""
    pieces: tuple[Mapping[str, TensorHeader], ...] = ()
    """Of a packed one: what each block of its rows is stored as, by the part's name in `checkpoints.packed`."""
    paired_heads: int = 0
    """Heads whose rows lie in pairs, as a rotation turns them; 0: each is turned with the one half a head further,
    as here."""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def nbytes_in(self, itemsize: int) -> int:
        """What it takes in memory, where numbers that are not packed take `itemsize` bytes."""
        return int(self.elements * (_PACKED_BITS[self.dtype] / 8 if self.pieces else itemsize))

    @property
    def is_matrix(self) -> bool:
        """Whether it is one of attention or of a dense block: beside 4 bit, these are nearly all the rest."""
        return _MATRIX.search(self.name) is not None

    @property
    def layer(self) -> int | None:
        """The layer it belongs to; None: none."""
        return layer_of(self.name)


def layer_of(name: str) -> int | None:
    """The layer that a weight of that name belongs to; None: none."""
    match = _LAYER.search(name)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The small files of a model directory, before anything is loaded."""

    path: Path
    name: str
    """As a person would name it: "bundled", a path, a Hub id."""
    config: dict[str, Any]
    """config.json"""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """What its authors tell dg-lsp beyond that; empty for released checkpoints."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the header of a GGUF says, its tokenizer included; empty where the files are others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Files):
    family: str
    length: LengthStrategy
    layers: int
    tensors: tuple[TensorHeader, ...]
    """Those that are loaded, named as in the loaded module."""
    nbytes: int
    """Size of all its weight files on disk."""

    @property
    def parameters(self) -> int:
        """Parameters that are loaded; tied ones count once, as they are stored once."""
        return sum(tensor.elements for tensor in self.tensors)

    def nbytes_in(self, itemsize: int) -> int:
        """What they take in memory, where numbers that are not packed take `itemsize` bytes."""
        return sum(tensor.nbytes_in(itemsize) for tensor in self.tensors)

    @property
    def in_4_bit(self) -> bool:
        """Whether any of its weights are packed."""
        return any(tensor.pieces for tensor in self.tensors)

    @property
    def sizes(self) -> Sizes:
        """What decides on the memory that it works in."""
        table = next((tensor.shape for tensor in self.tensors if tensor.name.endswith(_TABLE)), (0, 0))
        keys = sum(tensor.shape[0] for tensor in self.tensors if tensor.name.endswith(_KEYS))
        return Sizes(vocabulary=table[0], hidden=table[1], token_features=2 * keys)


def read_files(path: Path, name: str) -> Files:
    """The small files of a model directory. Raises ModelError."""
    config = read_json(path / "config.json", name)
    return Files(path=path, name=name, config=config, metadata=read_json_if_there(path / METADATA_FILE, name))


def weight_files(path: Path, name: str) -> list[Path]:
    """The safetensors files of a model directory, all of them present. Raises ModelError."""
    index = path / INDEX_FILE
    if not index.is_file():
        if (path / SINGLE_FILE).is_file():
            return [path / SINGLE_FILE]
        raise ModelError(_no_weights(path, name))
    shards = _shards(index, name)
    missing = [shard for shard in shards if not (path / shard).is_file()]
    if missing:
        raise ModelError(
            f"{name} is incomplete, {missing[0]} is missing ({len(missing)} of {len(shards)} files): pull it again."
        )
    return [path / shard for shard in shards]


def read_header(file: Path) -> list[TensorHeader]:
    """What a safetensors file says it holds, checked against its size. Raises ModelError where it is cut off or
    something else.
    """
    if not file.is_file():  # the library would wait for a pipe
        raise ModelError(f"{file} is no ordinary file: pull or copy the model again.")
    try:
        with safe_open(file, "np"):  # checks it all, but does not tell where a tensor lies
            pass
        with file.open("rb") as stream:
            nbytes = int.from_bytes(stream.read(8), "little")
            described: dict[str, Any] = json.loads(stream.read(nbytes))
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{file} is cut off or damaged ({first_line(error)}): pull or copy the model again.") from None
    described.pop("__metadata__", None)
    return [
        TensorHeader(
            name=name,
            dtype=each["dtype"],
            shape=tuple(each["shape"]),
            file=file,
            offset=8 + nbytes + each["data_offsets"][0],
            nbytes=each["data_offsets"][1] - each["data_offsets"][0],
        )
        for name, each in described.items()
    ]


@contextmanager
def reading(what: str) -> Generator[None]:
    """Whatever the files of a model make their readers raise becomes a ModelError that names `what`.

    A damaged file fails in any way, down to the panics of Rust libraries, which are no Exceptions.
    """
    try:
        yield
    except (EngineError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if is_out_of_memory(error):
            raise
        _log.info("%s can't be loaded", what, exc_info=True)
        raise ModelError(f"{what} can't be loaded ({first_line(error)}): pull or copy it again.") from error


def first_line(error: BaseException) -> str:
    """What an error of a library says, as a part of a sentence."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def read_text(file: Path, name: str) -> str:
    """What is in `file`, a file of the model `name`. Raises ModelError."""
    try:
        return read_regular(file, _MOST_JSON_NBYTES).decode()
    except FileNotFoundError:
        raise ModelError(f"{name} has no {file.name}: name a model directory as transformers writes it.") from None
    except (OSError, ValueError, BadInput):
        raise ModelError(_unreadable(file, name)) from None


def read_json(file: Path, name: str) -> dict[str, Any]:
    """The object in `file`, a file of the model `name`. Raises ModelError."""
    try:
        value = json.loads(read_text(file, name))
    except (ValueError, RecursionError):
        raise ModelError(_unreadable(file, name)) from None
    if not isinstance(value, dict):
        raise ModelError(f"{name} has a {file.name} that is no JSON object: pull or copy the model again.")
    return cast("dict[str, Any]", value)


def check_fields(config: Mapping[str, object], known: Mapping[str, Sequence[object]], name: str) -> None:
    """Raises ModelError for a field of config.json that asks for another computation than those that are `known`."""
    for field_name, values in known.items():
        if field_name in config and config[field_name] not in values:
            raise ModelError(
                f"The config.json of {name} says {field_name} is {config[field_name]!r}, which dg-lsp can't compute: "
                "use another model."
            )


def _unreadable(file: Path, name: str) -> str:
    return f"{name} has a {file.name} that can't be read: pull or copy the model again."


def read_json_if_there(file: Path, name: str) -> dict[str, Any]:
    """The object in `file`; an empty one where there is no such file. Raises ModelError."""
    return read_json(file, name) if file.exists() else {}


def _shards(index: Path, name: str) -> list[str]:
    weight_map = read_json(index, name).get("weight_map")
    shards = set(cast("dict[str, object]", weight_map).values()) if isinstance(weight_map, dict) else set[object]()
    if not shards or any(not isinstance(shard, str) or Path(shard).name != shard for shard in shards):
        raise ModelError(f"{name} has an unusable {index.name}: pull or copy the model again.")
    return sorted(cast("set[str]", shards))


def _no_weights(path: Path, name: str) -> str:
    pickles = sorted(file.name for pattern in _PICKLES for file in path.glob(pattern))
    if pickles:
        return (
            f"{name} holds its weights as pickle ({pickles[0]}), a format that can run any code when it is opened: "
            f"convert them to safetensors."
        )
    return f"{name} has no weights ({SINGLE_FILE} or {INDEX_FILE}): name a complete model directory."
