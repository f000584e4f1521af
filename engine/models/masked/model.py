"""Family `masked`: full bidirectional attention over [prefix | gap of mask tokens | suffix]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.directory import Checkpoint, LengthStrategy, read_files
from engine.checkpoints.placement import Placement
from engine.checkpoints.working import logits_nbytes
from engine.core.runtime_paths import data_dir
from engine.models.base import Context, Facts, Noise, Rows, Sampling
from engine.models.length_prior import LengthPrior, prior_file, read_prior
from engine.models.masked.checkpoint import read_module, read_tokenizer
from engine.models.masked.description import Described, described
from engine.models.masked.memory import Line, MaskedContext, Memory, Pass, Window, room_on, whole, worth_keeping
from engine.models.masked.network import Network
from engine.models.masked.prompt import MaskedPrompt
from engine.models.masked.published import Published
from engine.models.masked.score import guesses_of
from engine.models.masked.windows import chunks, run_windows
from engine.models.tokenizer import Texts
from engine.models.vocabulary import Vocabulary

_MAX_STEPS = 128
"""Steps of a canvas, one token each at the least; a wider gap takes several a step."""
_EXPAND_FROM = 64
"""Slots that a gap starts with under `expand`."""
_CALIBRATED_WIDTHS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Widths that are looked at first under `calibrated`."""


class Masked(Texts):
    """A resident checkpoint of the family."""

    def __init__(self, network: Network, facts: Facts, prompt: MaskedPrompt, *, shifted: bool) -> None:
        super().__init__(prompt)
        self.facts = facts
        self.network = network
        self.memory = Memory(room_on(network.devices, network.layer_nbytes, logits_nbytes(facts.noise.vocab_size)))
        self.remembers = True
        """Whether steps reuse keys and values of the surroundings; without, each step computes everything."""
        self.shift = int(shifted)
        """How far before a token the position is that predicts it."""

    @classmethod
    def open(cls, checkpoint: Checkpoint, placement: Placement) -> Masked:
        """Load weights and tokenizer. Raises ModelError."""
        files = read_files(checkpoint.path, checkpoint.name)
        found = described(files)
        tokenizer = read_tokenizer(checkpoint)
        # The weights first: they vouch for the number of tokens that config.json says.
        network = Network(read_module(checkpoint, found.architecture, placement), found.architecture.rope_theta)
        vocabulary = Vocabulary(tokenizer, found.architecture.vocab, checkpoint.name)
        prompt = MaskedPrompt(tokenizer, vocabulary, found, cut_anywhere=files.told.get("cut_anywhere", False))
        facts = _facts(checkpoint, placement, found, vocabulary, files.told)
        return cls(network, facts, prompt, shifted=found.published.shifted)

    def encode(self, ids: Sequence[int]) -> MaskedContext:
        """Nothing can be computed yet: what stands before a gap looks at it, too."""
        return MaskedContext(ids=tuple(ids))

    @torch.inference_mode()
    def step(self, rows: Rows) -> Tensor:
        """Raw float32 logits [F, V] of the open positions, row by row. Self-conditioning means nothing here."""
        contexts = [_own(context) for context in rows.contexts]
        lines = self.lines(rows)
        logits: list[Tensor | None] = [None] * len(lines)
        self._run_whole(lines, contexts, logits)
        self._run_windows(lines, contexts, logits)
        return torch.cat([part for part in logits if part is not None])

    @torch.inference_mode()
    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """Pseudo-likelihood of each gap's ends and of the first suffix tokens, each guessed from what is around it."""
        known = _own(context)
        found: list[list[float]] = [[] for _ in gaps]
        mask = _mask_of(self.facts)
        guesses = [each for row, gap in enumerate(gaps) for each in guesses_of(known, gap, suffix, mask, row)]
        if guesses:
            windows = [self._recalled(known, each.line, stale=True) or whole(each.line) for each in guesses]
            for each, logits in zip(guesses, self._logits(windows), strict=True):
                truth = torch.tensor(each.truth, device=logits.device)[:, None]
                found[each.row] += logits.log_softmax(dim=-1).gather(1, truth)[:, 0].tolist()
        return found

    @property
    def reads(self) -> int:
        """Tokens of context and canvas that it was trained to read."""
        return self.facts.context_limit

    def forget(self) -> None:
        """Nothing outlives its gap here."""

    def shrink_caches(self) -> None:
        """Let go of all that is remembered, and remember half as much from now on."""
        self.memory.shrink()

    def lines(self, rows: Rows) -> list[Line]:
        """The sequences of `rows`."""
        return [self._line(rows, row, _own(context)) for row, context in enumerate(rows.contexts)]

    def _line(self, rows: Rows, row: int, context: MaskedContext) -> Line:
        canvas = rows.canvas[row, : rows.lengths[row]].tolist()
        open_ = rows.open[row, : rows.lengths[row]].tolist()
        tail = next((back for back, each in enumerate(reversed(open_)) if each), len(open_))
        gap = canvas[: len(canvas) - tail]
        return Line(
            ids=(*context.ids, *canvas),
            context=context.length,
            tail=tail,
            asked=[context.length + at for at, each in enumerate(open_) if each],
            known=[token for token in gap if token != self.facts.noise.mask_id],
        )

    def _run_whole(self, lines: Sequence[Line], contexts: Sequence[MaskedContext], logits: list[Tensor | None]) -> None:
        """The lines that nothing remembered fits. Of those that know nothing of their gap yet, one is enough."""
        chosen: list[int] = []
        blank: set[tuple[int, int]] = set()
        recalled = [self._recalled(context, line) for line, context in zip(lines, contexts, strict=True)]
        for row, (line, context) in enumerate(zip(lines, contexts, strict=True)):
            if recalled[row] is not None:
                continue
            kind = (id(context), len(line.ids))
            if self.remembers and worth_keeping(line) and not line.known and kind in blank:
                continue
            blank |= {kind} if not line.known else set()
            chosen.append(row)
        if not chosen:
            return
        used = {window.held for window in recalled if window is not None and window.held is not None}
        kept: list[Pass | None] = [None] * len(chosen)
        if self.remembers:
            kept = self.memory.planned([lines[row] for row in chosen], [contexts[row] for row in chosen], used)
        windows = [whole(lines[row], new) for row, new in zip(chosen, kept, strict=True)]
        for row, part in zip(chosen, self._logits(windows), strict=True):
            logits[row] = part
        # Only now: a step that failed may have left some layers without keys.
        for row, new in zip(chosen, kept, strict=True):
            if new is not None:
                contexts[row].passes.append(new)

    def _run_windows(
        self, lines: Sequence[Line], contexts: Sequence[MaskedContext], logits: list[Tensor | None]
    ) -> None:
        """The other lines, with the help of what is remembered."""
        left = [row for row, part in enumerate(logits) if part is None]
        if not left:
            return
        windows = [self._recalled(contexts[row], lines[row]) or whole(lines[row]) for row in left]
        for row, part in zip(left, self._logits(windows), strict=True):
            logits[row] = part
        for held in {id(window.held): window.held for window in windows}.values():
            if held is not None:
                held.uses += 1

    def _recalled(self, context: MaskedContext, line: Line, *, stale: bool = False) -> Window | None:
        return context.recall(line, stale=stale) if self.remembers else None

    def _logits(self, windows: Sequence[Window]) -> Iterator[Tensor]:
        """Of the asked positions [F, V], line by line."""
        for chunk in chunks(windows):
            hidden = run_windows(self.network, chunk)
            parts: list[Tensor] = []
            for row, window in enumerate(chunk):
                places = [max(position - self.shift, 0) - window.start for position in window.line.asked]
                parts.append(hidden[row, places])
            sizes = [len(part) for part in parts]
            yield from self.network.logits(torch.cat(parts)).split(sizes)


def sampling_of(published: Published) -> Sampling:
    """Its sampler, with our bound on the steps of a canvas."""
    return Sampling(
        max_steps=_MAX_STEPS,
        t_min=published.temperature,
        t_max=published.temperature,
        entropy_bound=published.entropy_bound,
        # The canvas is done when no mask is left.
        stability_threshold=0,
        confidence_threshold=0.0,
        top_p=published.top_p,
    )


def widths_of(length: LengthStrategy) -> tuple[int, ...]:
    """What a strategy begins with."""
    return (_EXPAND_FROM,) if length == "expand" else _CALIBRATED_WIDTHS


def _own(context: Context) -> MaskedContext:
    assert isinstance(context, MaskedContext)
    return context


def _mask_of(facts: Facts) -> int:
    assert facts.noise.mask_id is not None
    return facts.noise.mask_id


def _facts(
    checkpoint: Checkpoint, placement: Placement, found: Described, vocabulary: Vocabulary, told: dict[str, Any]
) -> Facts:
    published = found.published
    return Facts(
        name=checkpoint.name,
        family=checkpoint.family,
        parameters=checkpoint.parameters,
        device=placement.device,
        dtype=str(placement.dtype).removeprefix("torch."),
        length=checkpoint.length,
        noise=Noise(mask_id=found.mask, vocab_size=found.architecture.vocab),
        sampling=sampling_of(published),
        pad_id=found.end,
        forbidden_ids=tuple(token for token in vocabulary.empty if token != found.end),
        canvas_length=published.context // 2,
        widths=tuple(told.get("widths", widths_of(checkpoint.length))),
        context_limit=published.context,
        instructions=False,
        expand_id=found.expand,
        requests_first=published.requests_first,
        prior=read_prior(prior_file(data_dir(), checkpoint.name)) or _told_prior(told),
    )


def _told_prior(told: dict[str, Any]) -> LengthPrior | None:
    return LengthPrior(**told["prior"]) if "prior" in told else None
