"""`python -m engine run`: how the language server starts an engine without knowing its code."""

from engine.cli.engine import engine

engine(prog_name="python -m engine")
