"""`python -m engine`: `dg-lsp engine`, where nothing of an editor's is imported."""

from engine.cli.engine import engine

engine(prog_name="python -m engine")
