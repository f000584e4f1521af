"""The commands that need the engine's packages. They import torch only when they run, so that `--help` is fast."""
