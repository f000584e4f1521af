"""Published GGUF files: what they say of a model, and their tensors as numbers.

Source: the format's description in ggml's repository; the blocks of its types are decoded by the package `gguf`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from torch import Tensor

from engine.common.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFile:
    """One file, its tensors still on disk."""

    path: Path
    architecture: str
    fields: dict[str, Any]
    """By their names; those of the architecture without its prefix."""
    tensors: dict[str, Any]
    """By their names, as the package reads them."""

    def field(self, name: str) -> Any:
        """Raises ModelError where the file does not say it."""
        try:
            return self.fields[name].contents()
        except KeyError:
            raise ModelError(f"{self.path} does not say its {name}: pull or copy the model again.") from None

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        """The numbers of a tensor. Raises ModelError where the file lacks it, or has it in a type that is unknown."""
        try:
            stored = self.tensors[name]
            numbers = dequantize(stored.data, stored.tensor_type)
            # What is stored as numbers already would be the file's own pages.
            return torch.from_numpy(np.require(numbers, requirements="W")).to(dtype)
        except KeyError:
            raise ModelError(f"{self.path} lacks {name}: pull or copy the model again.") from None
        except NotImplementedError as error:
            raise ModelError(f"{name} of {self.path} is stored in a way that is unknown here ({error}).") from None


def read_gguf(path: Path) -> GgufFile:
    """Raises ModelError for a file that is none, or is cut off."""
    try:
        reader = GGUFReader(path)
    except (OSError, ValueError, IndexError) as error:
        raise ModelError(f"{path} can't be read as GGUF ({error}): pull or copy the model again.") from None
    fields: dict[str, Any] = dict(reader.fields)
    architecture = str(fields["general.architecture"].contents())
    own = {name.removeprefix(f"{architecture}."): field for name, field in fields.items()}
    return GgufFile(
        path=path,
        architecture=architecture,
        fields=own,
        tensors={tensor.name: tensor for tensor in reader.tensors},
    )
