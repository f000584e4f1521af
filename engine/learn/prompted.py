"""Gaps of a repository in a model's own prompt, for models that were not trained on our layouts: chat turns around a
gap, or the text itself with a gap of masks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from engine.common.errors import BadInput
from engine.common.request import FillRequest, Snippet
from engine.lab.eval.holes import holes
from engine.learn.canvases import Canvases, canvas_batch
from engine.learn.contexts import ContextRow
from engine.learn.corpus import Split
from engine.learn.examples import CHARACTERS, KINDS, LONGEST_GAP, Example, related_parts
from engine.learn.lessons import Lessons, without_predictions
from engine.learn.masked_rows import ControlTokens, MaskedRows, RowOfTruth, hidden_gap, masked_row, masked_rows
from engine.learn.packed import PackedCorpus
from engine.learn.repository import Repository
from engine.learn.training_recipe import Recipe
from engine.models.base import Prompt
from engine.models.gemma.model import DiffusionGemma
from engine.models.masked.model import Masked

FROM_START = 0.3
"""Share of gaps that begin in a file's first lines; the others may be anywhere."""
_ATTEMPTS = 200
"""Most draws until a gap fits."""
_FEWEST = 32
"""Least number of tokens of prefix and suffix that must fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A gap as it is requested, with its true text."""

    prompt: Prompt
    gap: list[int]
    """The gap's tokens, with those that the prompt took back before the cursor."""
    after_gap: str


class PromptedGaps:
    """Draws gaps from the files of one split."""

    def __init__(
        self, corpus: PackedCorpus, paths: Sequence[str], model: DiffusionGemma | Masked, recipe: Recipe
    ) -> None:
        """`paths`: the documents' paths, in their order."""
        self._corpus, self._paths, self._model, self._recipe = corpus, paths, model, recipe
        languages = {corpus.language(document) for document in range(len(corpus))}
        requests = [FillRequest(prefix="", suffix="", language=language) for language in languages]
        self._frame = max(len(model.prompt(request).context) for request in requests)
        """Most tokens of a prompt without any text of a file."""

    def rows(self, width: int, rng: random.Random) -> Iterator[ContextRow]:
        """The rows of a step, for canvases beside them."""
        for _ in range(self._recipe.rows(width)):
            drawn = self.draw(width - LONGEST_GAP, rng)
            ahead = max(self._recipe.pinned, self._recipe.shape.canvas if self._recipe.free_share else 0)
            row = ContextRow()
            row.add(
                Example(
                    context=[*drawn.prompt.context],
                    gap=drawn.gap,
                    after=self._model.tokenize(drawn.after_gap[: ahead * CHARACTERS])[:ahead],
                    inner=[],
                )
            )
            yield row

    def masked(self, width: int, known: ControlTokens, rng: random.Random) -> MaskedRows:
        """The rows of a step, for a masked model."""
        made = [self._masked(width, known, rng) for _ in range(self._recipe.rows(width))]
        return masked_rows(made, known.end)

    def _masked(self, width: int, known: ControlTokens, rng: random.Random) -> RowOfTruth:
        drawn = self.draw(width, rng)
        context, suffix = drawn.prompt.context, drawn.prompt.suffix
        spare = width - len(context) - len(drawn.gap) - len(suffix)
        return masked_row(context, hidden_gap(drawn.gap, known, rng, spare), suffix, known.shift)

    def draw(self, room: int, rng: random.Random) -> Drawn:
        """A gap whose prompt has at most `room` tokens. Raises BadInput where that is too few for any."""
        limit = room - self._frame
        for _ in range(_ATTEMPTS if limit >= _FEWEST else 0):
            drawn = self._drawn(self._corpus.choose(rng), room, limit, rng)
            if drawn is not None:
                return drawn
        raise BadInput(
            f"{self._model.info.name} can't be tuned on this folder: no gap fits in the {room} tokens that it reads at "
            "once here. Try `--model bundled`."
        )

    def _drawn(self, document: int, room: int, limit: int, rng: random.Random) -> Drawn | None:
        """A gap of a document, or None where the draw failed. `limit`: tokens of a file's text in the prompt."""
        text, language = self._corpus.text(document), self._corpus.language(document)
        first = 0 if rng.random() < FROM_START else text.find("\n", rng.randrange(len(text))) + 1
        longest = min(LONGEST_GAP, room // 4)
        reach = text[first : first + room * CHARACTERS]
        found = holes(reach, language, rng, KINDS, count=1, longest=longest * CHARACTERS)
        if not found:
            return None
        start, end = first + found[0].start, first + found[0].end
        request = FillRequest(
            prefix=text[:start],
            suffix=text[end:],
            language=language,
            snippets=self._snippets(document, text[max(0, start - limit) : end + limit], limit, rng),
        )
        prompt = self._model.prompt(request, limit)
        gap = self._model.tokenize(prompt.head + text[start:end])
        whole = len(prompt.context) + (len(prompt.suffix) + len(gap) if isinstance(self._model, Masked) else 0)
        if not 0 < len(gap) <= longest or whole > room:
            return None
        return Drawn(prompt=prompt, gap=gap, after_gap=text[end:])

    def _snippets(self, document: int, near: str, limit: int, rng: random.Random) -> tuple[Snippet, ...]:
        """The part of a neighbouring file that shares most names with the text near the gap."""
        if rng.random() >= self._recipe.snippet_share:
            return ()
        tokens = limit // 10
        best = related_parts(self._corpus, document, near, tokens * CHARACTERS, rng)
        if not best:
            return ()
        part, other = best[0]
        text = self._model.detokenize(self._model.tokenize(part)[:tokens])
        return (Snippet(path=self._paths[other], text=text),) if text.strip() else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptedLessons:
    """Makes batches in a model's own prompt. The same arguments give the same batch, in any process."""

    corpora: Mapping[Split, tuple[PackedCorpus, Sequence[str]]]
    """The corpora with the paths of their documents, in order."""
    recipe: Recipe
    seed: int
    model: DiffusionGemma | Masked

    def batch(self, step: int, split: Split = "train") -> Canvases | MaskedRows:
        rng = random.Random(f"{self.seed}/{split}/{step}")
        width = self.recipe.contexts[step % len(self.recipe.contexts)]
        gaps = PromptedGaps(*self.corpora[split], self.model, self.recipe)
        if isinstance(self.model, Masked):
            return gaps.masked(width, control_tokens(self.model), rng)
        return without_predictions(canvas_batch(gaps.rows(width, rng), self.recipe, width, rng))


TuningLessons = Lessons | PromptedLessons


def lessons_of(
    model: DiffusionGemma | Masked, repository: Repository, corpus: Path, recipe: Recipe, seed: int
) -> TuningLessons:
    """Lessons in the layout that the model is served in, from the repository's `corpus`."""
    if isinstance(model, DiffusionGemma) and not model.info.instructions:
        return Lessons(corpus=corpus, recipe=recipe, seed=seed)
    splits = get_args(Split)
    corpora = {split: (PackedCorpus(corpus, split), [each.path for each in repository.of(split)]) for split in splits}
    return PromptedLessons(corpora=corpora, recipe=recipe, seed=seed, model=model)


def control_tokens(model: Masked) -> ControlTokens:
    mask = model.info.noise.mask_id
    assert mask is not None
    return ControlTokens(mask=mask, end=model.info.pad_id, expand=model.info.expand_id, shift=model.shift)
