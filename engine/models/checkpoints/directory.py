"""A model directory on disk: its small files, the headers of its weights, and whether it is complete."""

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
"""A positive number in a file: no bool, no string, no NaN."""
LengthStrategy = Literal["predicted", "slack", "discover", "expand", "calibrated", "causal"]
"""How the width of a gap is found: see engine.fill.lengths."""
METADATA_FILE = "dg_lsp.json"
"""The file with what authors tell dg-lsp beyond config.json; released checkpoints have none."""
INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
TAKE_INSTEAD = (
    "take weights in bfloat16, or in 4 bit as NVFP4 (modelopt, compressed-tensors) or as int4 in groups of 32 "
    "(compressed-tensors)"
)
"""The remedy for weights in an unknown format."""
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")
_MOST_JSON_NBYTES = 256 << 20
"""Largest JSON file; the largest released tokenizers have 35 MB."""
_PACKED_BITS = {"INT4": 5.0, "NVFP4": 4.5}
"""Most bits of a packed weight, with its share of scales and zero points."""
_MATRIX = re.compile(r"\.layers\..+_proj\.weight$")
"""Names of matrices of attention and dense blocks."""
_KEYS = ".k_proj.weight"
_TABLE = "embed_tokens.weight"
_LAYER = re.compile(r"\.layers\.([0-9]+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorHeader:
    name: str
    dtype: str
    """The number format: "BF16" or "F32" as in safetensors, "INT4" or "NVFP4" for packed weights, the type of blocks
    such as "Q4_K" for a GGUF."""
    shape: tuple[int, ...]
    file: Path = Path()
    offset: int = 0
    """Position of its first byte in the file."""
    nbytes: int = 0
    """Size on disk; 0 for a packed one, whose pieces have sizes."""
    pieces: tuple[Mapping[str, TensorHeader], ...] = ()
    """The stored parts of a packed one, for each block of its rows, by their names in `checkpoints.packed`."""
    rounded: bool = False
    """Whether it is rounded to int4 as it is read: packed weights of a GGUF, in blocks that no product takes."""
    paired_heads: int = 0
    """Heads whose rows lie in pairs that a rotation turns together; 0: a rotation turns each row with the one half a
    head further, as in our modules."""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def nbytes_in(self, itemsize: int) -> int:
        """Size in memory, with `itemsize` bytes for numbers that are not packed."""
        bits = _PACKED_BITS["INT4" if self.rounded else self.dtype] if self.in_4_bit else 8 * itemsize
        return int(self.elements * bits / 8)

    @property
    def in_4_bit(self) -> bool:
        """Whether it is in 4 bit in memory."""
        return self.rounded or bool(self.pieces)

    @property
    def is_matrix(self) -> bool:
        """Whether it is a matrix of attention or of a dense block: beside weights in 4 bit these are nearly all the
        rest."""
        return _MATRIX.search(self.name) is not None

    @property
    def layer(self) -> int | None:
        """The number of its layer; None: it is in none."""
        return layer_of(self.name)


def layer_of(name: str) -> int | None:
    """The number of the layer of a weight with this name; None: it is in none."""
    match = _LAYER.search(name)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The small files of a model directory, before anything is loaded."""

    path: Path
    name: str
    """The name for people: "bundled", a path, a Hub id."""
    config: dict[str, Any]
    """The content of config.json."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """The content of dg_lsp.json; empty for released checkpoints."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The fields of a GGUF's header, its tokenizer included; empty for other files."""
    small: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Small files by name, as a GGUF's header says them; empty for other files."""

    def small_file(self, name: str) -> dict[str, Any]:
        """A small file; an empty one where there is none. Raises ModelError."""
        return self.small[name] if name in self.small else read_json_if_there(self.path / name, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Files):
    family: str
    length: LengthStrategy
    layers: int
    tensors: tuple[TensorHeader, ...]
    """The tensors to load, with their names in the loaded module."""
    nbytes: int
    """Size of all weight files on disk."""
    int8: bool = False
    """Whether a processor that multiplies int8 runs it in that format."""

    @property
    def parameters(self) -> int:
        """Number of loaded parameters; tied ones count once, as they are stored once."""
        return sum(tensor.elements for tensor in self.tensors)

    def nbytes_in(self, itemsize: int) -> int:
        """Size of the loaded weights in memory, with `itemsize` bytes for numbers that are not packed."""
        return sum(tensor.nbytes_in(itemsize) for tensor in self.tensors)

    @property
    def in_4_bit(self) -> bool:
        """Whether any of its weights are in 4 bit in memory."""
        return any(tensor.in_4_bit for tensor in self.tensors)

    @property
    def sizes(self) -> Sizes:
        """The sizes that its working memory depends on."""
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
    """The tensors in a safetensors file, checked against its size. Raises ModelError for a file that is cut off or of
    another kind."""
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
def loading(what: str) -> Generator[None]:
    """Within the block any failure to read a model's files becomes a ModelError that names `what`. Damaged files fail
    in any way, down to panics of Rust libraries, which are no Exceptions."""
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
    """The first line of an error of a library, as part of a sentence."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def read_text(file: Path, name: str) -> str:
    """The text of `file`, a file of the model `name`. Raises ModelError."""
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
    """Check that config.json requests no other computation than ours. Raises ModelError for a field with a value that
    is not `known`."""
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
