"""The editors that a replay can imitate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The command line names clients before it imports the protocol's types.
    from dg_lsp.documents.positions import Encoding


@dataclass(frozen=True, slots=True)
class Style:
    encodings: tuple[Encoding, ...]
    cancels: bool = False
    """Whether it cancels a request when it sends the next one."""


STYLES = {
    "vscode": Style(("utf-16",), cancels=True),
    "neovim": Style(("utf-8", "utf-16", "utf-32")),
    "emacs": Style(("utf-32", "utf-8", "utf-16")),
}
