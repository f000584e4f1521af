"""Lessons of a repository: gaps in the layout in which the model is served, with its own noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from tokenizers import Tokenizer

from engine.common.errors import BadInput
from engine.common.wording import counted
from engine.learn.canvases import Canvases
from engine.learn.contexts import NOTHING
from engine.learn.corpus import Split
from engine.learn.packed import pack
from engine.learn.repository import Repository
from engine.learn.shapes import Shape
from engine.learn.tokenizer import encode
from engine.learn.training import BatchSource
from engine.learn.training_recipe import Recipe
from engine.models.base import ModelInfo
from engine.models.causal.tokenizer import read_tokenizer as read_coder_tokenizer
from engine.models.checkpoints.directory import Checkpoint
from engine.models.masked.tokenizer import read_tokenizer as read_masked_tokenizer
from engine.models.prompts.chat_prompt import PINNED as CHAT_PINNED
from engine.models.prompts.layout import END, WIDTH
from engine.models.prompts.tokens import PINNED
from engine.models.tokenizer import read_tokenizer

LEAST_TOKENS = 5_000
"""Least number of tokens in a repository that can be tuned on."""
STEP_TOKENS = 2_048
"""Context tokens of one step."""
_WIDTH = 512
"""Most tokens of a row. What a repository teaches is what the rest of a file does not show already, so training
contexts are as long as served ones."""
_GAPS, _ENDS = 1.0, 0.3
"""Weights of the losses of gaps and of their ends. The loss of all other text falls soon; meanwhile a model forgets
where a gap ends, unless the end has a weight of its own."""
_SNIPPETS, _EDITS = 0.33, 0.1
"""Shares of texts with parts of other files, and with recent edits."""


def recipe_of(info: ModelInfo, metadata: Mapping[str, Any], tokens: int) -> Recipe:
    """The recipe that fits how a model with this `dg_lsp.json` is served, over so many context tokens."""
    own = metadata.get("layout") == "tokens"
    # Another one's prompt holds all of the suffix, as far as it is read.
    pinned, predicts = metadata.get("pinned") if own else CHAT_PINNED, info.length == "predicted"
    width = min(_WIDTH, info.context_limit)
    return Recipe(
        shape=Shape(vocab=info.noise.vocab_size, canvas=info.canvas_length),
        noise="uniform" if info.noise.mask_id is None else "absorbing",
        tokens=tokens,
        canvases_from=0,
        decay=0,
        contexts=(width,),
        step_tokens=max(STEP_TOKENS, width),
        function_share=0.0,
        whole_rows=True,
        canvas_share=0.5,
        # A model that predicts widths and ends ranks what it fills by them, too.
        next_token_weight=1.0 if predicts else 0.3,
        gap_weight=_GAPS,
        end_weight=_ENDS,
        snippet_share=_SNIPPETS,
        echo_share=0.0,
        edit_share=_EDITS if metadata.get("edits") else 0.0,
        pinned=pinned or PINNED,
        repeated=pinned is not None,
        # Where nobody tells the width, unused slots are part of the answer; `discover` reads on into the suffix.
        free_share=0.4 if info.length == "discover" else 0.0,
        fitting_share=1.0 if predicts or info.length == "discover" else 0.25,
    )


def tokenizer_of(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer of a checkpoint. Raises ModelError."""
    readers = {"masked": read_masked_tokenizer, "causal": read_coder_tokenizer}
    return readers.get(checkpoint.family, read_tokenizer)(checkpoint)


def count_tokens(repository: Repository, tokenizer: Tokenizer) -> dict[Split, int]:
    """Tokens in both splits. Raises BadInput where there is too little to learn from."""
    tokens = {
        split: sum(len(encode(tokenizer, each.text)) for each in repository.of(split)) for split in get_args(Split)
    }
    if tokens["train"] < LEAST_TOKENS or not repository.of("held-out"):
        raise BadInput(
            f"There is too little to learn from: {counted(tokens['train'], 'token')} in "
            f"{counted(len(repository.documents), 'file')} of code, and {LEAST_TOKENS:,} in two files or more are "
            f"needed.{repository.note} Name a folder with more code; `dg-lsp files` lists what may be read of one."
        )
    return tokens


def write_corpus(repository: Repository, tokenizer: Tokenizer, out: Path) -> None:
    """Write both splits for `PackedCorpus`, with the model's tokenizer. Raises OSError where the disk refuses."""
    (out / "tokenizer").mkdir(parents=True, exist_ok=True)
    # Its own `save` tells of a full disk by an error that is none of the operating system's.
    (out / "tokenizer" / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    for split in get_args(Split):
        pack(repository.of(split), out / "packed" / split)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """Makes batches in the bundled model's layout. The same arguments give the same batch, in any process."""

    corpus: Path
    recipe: Recipe
    seed: int

    def batch(self, step: int, split: Split = "train") -> Canvases:
        made = BatchSource(corpus=self.corpus, recipe=self.recipe, seed=self.seed).batch(step, 0, split)
        assert isinstance(made, Canvases)
        # Predictions of a gap's end and width came with the repeated suffix.
        return made if self.recipe.repeated else without_predictions(made)


def without_predictions(batch: Canvases) -> Canvases:
    """The same batch without targets after tokens that mean nothing to the model."""
    ids, target = batch.contexts.ids, batch.contexts.target
    queries = (ids == WIDTH) | (ids == END) | (target == END)
    return replace(batch, contexts=replace(batch.contexts, target=target.masked_fill(queries, NOTHING)))
