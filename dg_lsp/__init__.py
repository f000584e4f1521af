"""The language server and the command line of dg-lsp. Never imports torch or transformers."""

from engine.common.version import __version__

__all__ = ["__version__"]
