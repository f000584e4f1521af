"""What the HTTP door needs beside the engine."""

from __future__ import annotations

from engine.core.errors import BadInput


def check_extra() -> None:
    """Raises BadInput where it is not installed."""
    try:
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise BadInput(
            f"The HTTP door needs {error.name}, which is not installed: "
            "run `pipx install --force '.[http]'` in a clone of dg-lsp."
        ) from None
