"""Reads the header of a GGUF file: a model's fields, names and places of its tensors. Imports no torch, reads no
weights.

The package `gguf` takes eight seconds for a coder's header and trusts the counts in it. Here
each count is checked against the bytes that are left. Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import TensorHeader

SUFFIX = ".gguf"
BLOCKS = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
}
"""For each type that can be read: numbers of a block, and bytes of a block."""
_IN_ORDER = """
F32 F16 Q4_0 Q4_1 4 5 Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ2_XXS IQ2_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ2_S
IQ4_XS I8 I16 I32 I64 F64 IQ1_M BF16 31 32 33 TQ1_0 TQ2_0 36 37 38 MXFP4 NVFP4
"""
"""ggml's types; a number stands for one that is no more."""
_TYPES = dict(enumerate(_IN_ORDER.split()))
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_ALIGNMENT = 32
_MOST_HEADER_NBYTES = 256 << 20
"""Largest header; one with a vocabulary of a quarter of a million has 20 MB."""
_CHUNK_NBYTES = 8 << 20
_LEAST_ENTRY_NBYTES = 24
"""Least size of a tensor's description, without its name."""
_MOST_DIMENSIONS = 4
_MOST_ELEMENTS = 1 << 40
_SHARD = re.compile(r"(.+-)([0-9]{5})-of-([0-9]{5})\.gguf")


class Readable(Protocol):
    def read(self, nbytes: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFile:
    """The content of one file, or of the several that a model was split into; tensors stay on disk."""

    path: Path
    architecture: str
    fields: Mapping[str, Any]
    """Fields by name, those of the architecture without its prefix."""
    tensors: Mapping[str, TensorHeader]
    """Tensors by name, with shapes as in torch: rows first."""

    def field(self, name: str) -> Any:
        """A field. Raises ModelError where the file has none."""
        if name not in self.fields:
            raise ModelError(f"{self.path} does not say its {name}: pull or copy the model again.")
        return self.fields[name]

    def size(self, name: str) -> int:
        """A field with a count. Raises ModelError where it is none."""
        value = self.field(name)
        if type(value) is not int or not 0 < value < 1 << 32:
            raise ModelError(f"{self.path} says its {name} is {str(value)[:80]}: pull or copy the model again.")
        return value

    @property
    def nbytes(self) -> int:
        """Size on disk of all its files."""
        return sum(file.stat().st_size for file in {tensor.file for tensor in self.tensors.values()})


def read_gguf(path: Path) -> GgufFile:
    """The header of a file, and of those that it was split into. Raises ModelError for a file that is no GGUF, is cut
    off, or contradicts itself or its size."""
    first = _read(path)
    count = first.fields.get("split.count", 0)
    if not isinstance(count, int) or count < 2:
        return first
    match = _SHARD.fullmatch(path.name)
    if match is None or int(match[3]) != count:
        raise ModelError(f"{path} is one of {count} parts, but is not named as one: give it its published name.")
    parts = [path.with_name(f"{match[1]}{number:05}-of-{count:05}{SUFFIX}") for number in range(1, count + 1)]
    if missing := [part.name for part in parts if not part.is_file()]:
        raise ModelError(f"{path} is incomplete, {missing[0]} is missing ({len(missing)} of {count}): pull it again.")
    return joined([_read(part) for part in parts])


def read_header(path: Path, stream: Readable, nbytes: int) -> GgufFile:
    """The header of a file of `nbytes` bytes, from the front of a stream. Raises ModelError as `read_gguf` does."""
    return _Header(path, stream, nbytes).read()


def joined(parts: list[GgufFile]) -> GgufFile:
    """The model that was split into these parts. Raises ModelError for parts with the same tensors."""
    tensors = {name: tensor for part in parts for name, tensor in part.tensors.items()}
    if len(tensors) != sum(len(part.tensors) for part in parts):
        raise ModelError(f"The parts of {parts[0].path} hold the same tensors twice: pull or copy the model again.")
    return replace(parts[0], tensors=tensors)


def gguf_file(path: Path) -> Path | None:
    """The GGUF at a path: the file itself, or the only one in a folder; None where there is none. Raises ModelError for
    a folder with several models."""
    if path.is_file():
        return path if path.suffix.lower() == SUFFIX else None
    files = sorted(file for file in path.glob(f"*{SUFFIX}") if not _is_later_part(file))
    if len(files) > 1:
        raise ModelError(f"{path} holds several models ({', '.join(file.name for file in files[:3])}): name the file.")
    return files[0] if files else None


def _is_later_part(file: Path) -> bool:
    match = _SHARD.fullmatch(file.name)
    return match is not None and int(match[2]) > 1


def _read(path: Path) -> GgufFile:
    if not path.is_file():  # a pipe would be waited for
        raise ModelError(f"{path} is no ordinary file: name a GGUF.")
    try:
        with path.open("rb") as stream:
            return read_header(path, stream, path.stat().st_size)
    except OSError as error:
        raise ModelError(f"{path} can't be read ({error.strerror}): check its permissions.") from None


class _Header:
    """Reads the header of a file from its front."""

    def __init__(self, path: Path, stream: Readable, nbytes: int) -> None:
        self._path = path
        self._stream = stream
        self._nbytes = nbytes
        self._data = b""
        self._at = 0

    def read(self) -> GgufFile:
        magic, version = self._take(4), self._number("<I")
        if magic != _MAGIC:
            raise ModelError(f"{self._path} is no GGUF: name one, or a model directory.")
        if version not in _VERSIONS:
            raise ModelError(f"{self._path} is GGUF of version {version}, and dg-lsp reads 2 and 3: pull it again.")
        tensor_count, field_count = self._number("<Q"), self._number("<Q")
        self._expect(tensor_count * _LEAST_ENTRY_NBYTES + field_count * 13)
        fields: dict[str, Any] = {}
        for _ in range(field_count):
            name = self._string()
            if name in fields:
                raise self._damaged(f"it says {name[:80]!r} twice")
            fields[name] = self._value(self._number("<I"))
        entries = [self._entry() for _ in range(tensor_count)]
        architecture = str(fields.get("general.architecture"))
        return GgufFile(
            path=self._path,
            architecture=architecture,
            fields={name.removeprefix(f"{architecture}."): value for name, value in fields.items()},
            tensors=self._placed(entries, fields.get("general.alignment", _ALIGNMENT)),
        )

    def _entry(self) -> TensorHeader:
        name = self._string()
        dimensions = self._number("<I")
        if dimensions > _MOST_DIMENSIONS:
            raise self._damaged(f"{name[:80]!r} has {dimensions} dimensions")
        shape = tuple(reversed([self._number("<Q") for _ in range(dimensions)]))
        kind, offset = self._number("<I"), self._number("<Q")
        dtype = _TYPES.get(kind, str(kind))
        if dtype not in BLOCKS:
            raise ModelError(
                f"{name[:80]} of {self._path} is of the type {dtype}, which dg-lsp can't read: "
                "take a file in Q4_K_M, Q8_0 or another of " + ", ".join(BLOCKS) + "."
            )
        tensor = TensorHeader(name=name, dtype=dtype, shape=shape, file=self._path, offset=offset)
        block, block_nbytes = BLOCKS[dtype]
        if not shape or 0 in shape or shape[-1] % block or tensor.elements > _MOST_ELEMENTS:
            raise self._damaged(f"{name[:80]!r} can't be {shape} in {dtype}")
        return replace(tensor, nbytes=tensor.elements // block * block_nbytes)

    def _placed(self, entries: list[TensorHeader], alignment: object) -> dict[str, TensorHeader]:
        """Tensors with their offsets in the file, each inside it and none overlapping another."""
        if type(alignment) is not int or alignment not in {1 << power for power in range(3, 17)}:
            raise self._damaged(f"its alignment is {str(alignment)[:80]}")
        start = -(-self._at // alignment) * alignment
        tensors = {each.name: replace(each, offset=start + each.offset) for each in entries}
        if len(tensors) < len(entries):
            raise self._damaged("it names a tensor twice")
        end = start
        for each in sorted(tensors.values(), key=lambda tensor: tensor.offset):
            if each.offset % alignment or each.offset < end:
                raise self._damaged(f"{each.name[:80]!r} lies in another tensor")
            end = each.offset + each.nbytes
        if end > self._nbytes:
            raise ModelError(
                f"{self._path} is cut off, it has {self._nbytes:,} of {end:,} bytes: pull or copy the model again."
            )
        return tensors

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind != _ARRAY:
            raise self._damaged(f"it has a field of the type {kind}")
        of, count = self._number("<I"), self._number("<Q")
        if of == _STRING:
            return self._strings(count)
        if of not in _SCALARS:
            raise self._damaged(f"it has an array of the type {of}")
        form = _SCALARS[of]
        return list(struct.unpack(f"<{count}{form[1]}", self._take(count * struct.calcsize(form))))

    def _strings(self, count: int) -> list[str]:
        """A list of strings, without a call for each: a vocabulary has hundreds of thousands."""
        self._expect(count * 8)
        found: list[str] = []
        length = struct.Struct("<Q").unpack_from
        at, data = self._at, self._data
        for _ in range(count):
            if at + 8 > len(data):
                data = self._until(at + 8)
            end = at + 8 + length(data, at)[0]
            if end > len(data):
                data = self._until(end)
            found.append(data[at + 8 : end].decode(errors="replace"))
            at = end
        self._at = at
        return found

    def _string(self) -> str:
        return self._take(self._number("<Q")).decode(errors="replace")

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _take(self, nbytes: int) -> bytes:
        start = self._at
        data = self._until(start + nbytes)
        self._at += nbytes
        return data[start : self._at]

    def _expect(self, nbytes: int) -> None:
        """Raises ModelError where fewer bytes are left than so many."""
        if nbytes > min(self._nbytes, _MOST_HEADER_NBYTES) - self._at:
            raise self._damaged("it counts more than it holds")

    def _until(self, end: int) -> bytes:
        if end > len(self._data):
            self._expect(end - self._at)
            self._data += self._stream.read(max(_CHUNK_NBYTES, end - len(self._data)))
            if end > len(self._data):
                raise self._damaged("it became shorter")
        return self._data

    def _damaged(self, why: str) -> ModelError:
        return ModelError(f"{self._path} is cut off or damaged ({why}): pull or copy the model again.")
