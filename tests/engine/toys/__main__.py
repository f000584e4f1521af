"""`python -m tests.engine.toys NAME DIR`: train a model of the toy language, a real denoiser for tests."""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from engine.learn.export import export
from engine.learn.training import train
from tests.engine.learn.tiny import CPU
from tests.engine.toys.language import build_toy_corpus
from tests.engine.toys.masked import MaskedRecipe, export_masked, train_masked
from tests.engine.toys.recipes import RECIPES

MASKED = "toy-masked"


def make(name: str, out: Path, tokens: int | None = None, seed: int = 0) -> None:
    """Write the model directory `out`. `tokens`: context tokens to read, instead of the recipe's."""
    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch) / "corpus"
        if name == MASKED:
            own = MaskedRecipe()
            build_toy_corpus(text, seed, own.vocab)
            export_masked(train_masked(own, text, seed, print), own, text / "tokenizer", out, "expand")
        else:
            recipe, length = RECIPES[name]
            recipe = replace(recipe, tokens=tokens or recipe.tokens)
            build_toy_corpus(text, seed, recipe.shape.vocab)
            state = train(recipe, text, Path(scratch) / "run", seed, CPU, print)
            export(state, recipe, text / "tokenizer", out, length)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[*RECIPES, MASKED])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    make(told.name, told.out, seed=told.seed)
