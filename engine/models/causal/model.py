"""Family `causal`: pretrained coders, which decode from left to right and check trees of drafts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from engine.common.errors import ModelError
from engine.models.adapters.metadata import fingerprint_of
from engine.models.base import (
    PIECE,
    SCORED_SUFFIX,
    Context,
    DraftTree,
    ModelInfo,
    Noise,
    Rows,
    Sampling,
    Text,
    linear_cost,
)
from engine.models.causal.canvas import CoderCanvas
from engine.models.causal.chat_template import ChatTemplate
from engine.models.causal.cost import measured
from engine.models.causal.opening import Coder, coder_of
from engine.models.causal.pairs import FOLDER, PairedNetwork, fits, paired
from engine.models.causal.prompt import CausalPrompt
from engine.models.causal.text import CausalContext, CausalText, Checked, UnknownTokens, seen, tree_of
from engine.models.checkpoints.directory import Checkpoint
from engine.models.checkpoints.placement import Placement, memory_plan
from engine.models.checkpoints.working import CONTEXT, PASS
from engine.models.kv_cache import KVCache, Reuse, cache_budget
from engine.models.logits import Head, Logits
from engine.models.masked.network import MaskedNetwork
from engine.models.network import bias
from engine.models.piecewise_prefill import PiecewisePrefill
from engine.models.vocabulary import Vocabulary, read_vocabulary
from engine.models.weights import OnPercent

_LATER = PIECE - 1
"""Most tokens at a context's end that the pass over the first drafts reads: that saves a pass."""
SLOTS = 1
"""Unknown tokens of the canvas in a pass that checks a tree: of more, few are accepted."""
_MEASURED = 32
"""Tokens of the context that `measure` times passes after."""
_ANSWER = 512
"""Most tokens of an answer."""
_THRESHOLD = 0.12
"""Least confidence of an automatic suggestion. Of 200 development holes coder-1.5b answers 61% as surely, 70% of these
exactly; coder-0.5b 48%, 61% of these exactly."""
_MATCH_NATS = 0.1
"""See `ModelInfo.match_nats`. With 1.8, coder-0.5b fills 10 points less of 123 development holes with a workspace."""
_AT_ONCE = 32
"""Rows whose logits are in memory at the same time."""
_NOTHING = DraftTree(ids=(), parents=())
_NONE = UnknownTokens()
_NO_REUSE = Reuse(steps=1, near=0, share=0.0, shared=False)
_GREEDY = Sampling(
    max_steps=_ANSWER,
    t_min=0.0,
    t_max=0.0,
    entropy_bound=0.0,
    stability_threshold=0,
    confidence_threshold=0.0,
)


class Causal(PiecewisePrefill):
    """A resident coder."""

    pairs = FOLDER
    """The folder of the LoRA pairs of its canvas, which are used if they were trained beside this coder's file."""
    _cost = staticmethod(linear_cost)
    _scratch: CausalText | None = None
    """The text whose checked tree is still in the store after it; None: no tree is."""

    def __init__(
        self,
        network: MaskedNetwork,
        info: ModelInfo,
        prompt: CausalPrompt,
        chat: ChatTemplate | None = None,
        path: Path | None = None,
    ) -> None:
        """`path`: the file of its weights; pairs may have been trained beside it."""
        self._chat, self._path, self._unknown = chat, path, prompt.fim.prefix
        self.vocabulary = prompt.vocabulary
        self.tokenize = prompt.tokenize
        self.prompt = prompt.lay_out
        # The ids that no token has are never written: nothing was learnt of them.
        self.ends = frozenset(self.vocabulary.empty)
        self._take(network, info)
        self.forget()

    @classmethod
    def open(cls, checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None) -> Self:
        """Load weights and tokenizer. Raises ModelError."""
        coder = coder_of(checkpoint, placement, on_percent)
        model = cls.of_coder(coder, checkpoint.name, checkpoint.path, placement.context)
        model.info = replace(
            model.info,
            parameters=checkpoint.parameters,
            context_limit=placement.context,
            fingerprint=fingerprint_of(checkpoint),
            memory=memory_plan(checkpoint, placement),
        )
        model.measure()
        return model

    @classmethod
    def of_coder(cls, coder: Coder, name: str, path: Path | None = None, limit: int = CONTEXT) -> Self:
        """A model of a coder that is in memory. `limit`: most tokens of a context."""
        vocabulary = read_vocabulary(coder.tokenizer, coder.network.config.vocab, name)
        prompt = CausalPrompt(coder.tokenizer, vocabulary, coder.fim, limit)
        return cls(coder.network, _info(coder, name, vocabulary), prompt, coder.chat, path)

    def _take(self, network: MaskedNetwork, info: ModelInfo) -> None:
        self.network, self.info = network, info
        network.lay_out()
        self.head = Head(network.logits, info.noise.vocab_size)

    @cached_property
    def _paired(self) -> PairedNetwork | None:
        """The network with its pairs, read at the first use; None: the pairs belong to another file."""
        known = self._path is not None and fits(self._path, self.pairs)
        return paired(self.network, self.pairs) if known else None

    @property
    def fills_causally(self) -> bool:
        return True

    @property
    def slots(self) -> int:
        return 0 if self._paired is None else SLOTS

    @property
    def canvas(self) -> CoderCanvas | None:
        return None if self._paired is None else CoderCanvas(self, self._paired, self._unknown)

    def forget(self) -> None:
        """Empty the caches, as if no request had come before."""
        budget = cache_budget(self.network.devices, 0)
        self.cache = KVCache(len(self.network.layers), self.network.token_nbytes, budget, _NO_REUSE)

    @property
    def causal(self) -> Self:
        return self

    @property
    def chat(self) -> ChatTemplate | None:
        return self._chat

    @property
    def context_tokens(self) -> tuple[int, int]:
        return self.cache.tokens_requested, self.cache.tokens_reused

    def shrink_caches(self) -> None:
        """Drop what the cache holds for no running fill, and halve its budget."""
        self.cache.shrink()

    def step(self, rows: Rows) -> Logits:
        """Raises ModelError: a causal model has no canvases."""
        raise ModelError(f"{self.info.name} reads from left to right: it has no canvases.")

    def encode(self, ids: Sequence[int]) -> CausalContext:
        """Prefill what the cache lacks of a context; up to `_LATER` last tokens wait for the first check after it."""
        store, known = self.cache.open(ids, self.owner)
        context = CausalContext(store=store, ids=tuple(ids))
        if len(ids) - known > _LATER:
            self._read(CausalText(context=context), len(ids))
        self.cache.trim()
        return context

    def begin(self, context: Context, suffix: Sequence[int] = (), written: Sequence[int] = ()) -> CausalText:
        """Start a text after a context. `suffix` is ignored: the context holds it."""
        assert isinstance(context, CausalContext)
        return CausalText(context=context, written=tuple(written))

    @torch.inference_mode()
    def check(self, text: Text, tree: DraftTree, canvas: int | None = None) -> Tensor:
        """Logits [1 + N, V]: what follows the text, then what follows each of the tree's N tokens. With `canvas`, the
        number of a token (-1: the text's last), the pass denoises `slots` unknown tokens after it, too: `guessed`."""
        assert isinstance(text, CausalText)
        unknown = _NONE if canvas is None else UnknownTokens(after=canvas, count=self.slots)
        logits = self.network.logits(self._checked(text, tree, unknown))
        if canvas is None:
            return logits
        assert text.checked is not None
        text.checked.guessed = canvas, logits[1 + len(tree.ids) :]
        return logits[: 1 + len(tree.ids)]

    def guessed(self, text: Text) -> tuple[int, Tensor] | None:
        """The token that the canvas of the last check follows, and logits [S, V] of its slots; None: it had none."""
        assert isinstance(text, CausalText)
        return None if text.checked is None else text.checked.guessed

    def cost(self, rows: int) -> float:
        return self._cost(rows)

    def measure(self) -> None:
        """Time passes by their rows on this machine, for `cost`; empties the caches."""

        text = self.begin(self.encode(range(_MEASURED)))
        self.check(text, _NOTHING)

        def run(rows: int) -> list[float]:
            tree = DraftTree(ids=tuple(range(rows)), parents=tuple(range(-1, rows - 1)))
            # To read a number waits for the device.
            return self.check(text, tree)[:, 0].tolist()

        self._cost = measured(run)
        self.forget()

    @torch.inference_mode()
    def accept(self, text: Text, path: Sequence[int]) -> CausalText:
        """The text with a path of its checked tree after it; keys and values move to their place. Raises ValueError if
        the text was not checked, or the tree has no such path."""
        assert isinstance(text, CausalText)
        if text.checked is None:
            raise ValueError("The text was not checked with a tree.")
        tree, hidden = text.checked.tree, text.checked.hidden
        tree.check_path(path)
        if not path:
            return text
        ids = [tree.ids[at] for at in path]
        if self._scratch is text:
            store, start = text.context.store, len(text.ids)
            store.move(start, [start + at for at in path])
            store.ids += ids
            self._scratch = None
        return CausalText(
            context=text.context, written=(*text.written, *ids), last=hidden[path[-1] : path[-1] + 1].clone()
        )

    @torch.inference_mode()
    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """For each gap the log-probabilities of its tokens and of up to SCORED_SUFFIX tokens of the suffix, in nats."""
        rows = [(*gap, *suffix[:SCORED_SUFFIX]) for gap in gaps]
        if sum(map(len, rows)) > PASS and len(rows) > 1:
            half = len(gaps) // 2
            return [*self.score(context, gaps[:half], suffix), *self.score(context, gaps[half:], suffix)]
        tree, paths = tree_of(rows)
        if not tree.ids:
            return [[] for _ in rows]
        hidden = self._checked(self.begin(context), tree)
        follows = torch.tensor([parent + 1 for parent in tree.parents], device=hidden.device)
        tokens = torch.tensor(tree.ids, device=hidden.device)
        said = self._said(hidden[follows], tokens).tolist()
        return [[said[at] for at in path] for path in paths]

    def read(self, context: CausalContext) -> None:
        """Prefill all of a context."""
        self._read(CausalText(context=context), context.length)

    def read_ahead(self, ids: Sequence[int]) -> None:
        self.read(self.encode(ids))

    def _said(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """Log-probabilities [F] of tokens [F] by hidden states [F, E], few rows at a time with all of their logits: a
        head in 8 bits can't compute single ones."""
        found: list[Tensor] = []
        for states, own in zip(hidden.split(_AT_ONCE), tokens.split(_AT_ONCE), strict=True):
            logits = self.network.logits(states)
            found.append(logits.gather(1, own[:, None])[:, 0] - logits.logsumexp(dim=-1))
        return torch.cat(found)

    def _checked(self, text: CausalText, tree: DraftTree, unknown: UnknownTokens = _NONE) -> Tensor:
        """Hidden states [1 + N + U, E]: the text's last token, the tree's N tokens, U unknown tokens."""
        known = self._read(text, len(text.ids) - PIECE)
        known = min(known, len(text.ids) - (text.last is None))
        hidden = self._pass(text, known, len(text.ids), tree, unknown)
        if text.last is None or known < len(text.ids):
            text.last = hidden[:1]
        else:
            hidden = torch.cat((text.last, hidden))
        text.checked, self._scratch = Checked(tree=tree, hidden=hidden[1 : 1 + len(tree.ids)]), text
        return hidden

    @torch.inference_mode()
    def _read(self, text: CausalText, end: int) -> int:
        """Prefill the first `end` tokens of a text; returns how many tokens the store holds."""
        known = len(text.ids) - text.unread
        while known < end:
            until = min(known + PIECE, end)
            self._pass(text, known, until, _NOTHING)
            known = until
        return known

    def _pass(self, text: CausalText, known: int, end: int, tree: DraftTree, unknown: UnknownTokens = _NONE) -> Tensor:
        """One forward pass over the text's tokens from `known` to `end`, a tree and unknown tokens. Returns hidden
        states [R + N + U, E]; R is 1, the text's last token, or 0 where the pass reads none of the text."""
        store, ids, device = text.context.store, text.ids[known:end], self.network.device
        self._scratch = None
        del store.ids[known:]
        if not ids and not tree.ids and not unknown.count:
            return self.network.embeddings.weight.new_empty(0, self.network.config.hidden)
        tokens = torch.tensor([[*ids, *tree.ids, *([0] * unknown.count)]], device=device)
        down = [*tree.depths(), 0]
        places = [*range(known, end), *(end - 1 + depth for depth in down[:-1])]
        places += [end + down[unknown.after] + at for at in range(unknown.count)]
        first = max(len(ids) - 1, 0)
        groups = self.network.config.heads // self.network.config.kv_heads
        masks = [seen(tree, len(ids), known, unknown)]
        masks.append(masks[0][first:])
        whole, wanted_rows = (
            bias(each[None, None], self.network.mask_format).repeat(1, 1, groups, 1).to(device) for each in masks
        )
        last = len(self.network.layers) - 1

        def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys, values = store.update(known, index, key, value)
            shown = wanted_rows if index == last else whole
            return self.network.attention(query, keys, values, shown.to(query.device))

        wanted = torch.arange(first, tokens.shape[1], device=device)
        positions = torch.tensor([places], device=device)
        if unknown.count:
            assert self._paired is not None
            is_unknown = torch.arange(tokens.shape[1], device=device) >= tokens.shape[1] - unknown.count
            hidden = self._paired.run_canvas(tokens, positions, attend, wanted, unknown.count, is_unknown)
        else:
            hidden = self.network.run(tokens, positions, attend, wanted)
        store.ids += ids
        return hidden[0]


def _info(coder: Coder, name: str, vocabulary: Vocabulary) -> ModelInfo:
    weight = coder.network.embeddings.weight
    return ModelInfo(
        name=name,
        family="causal",
        parameters=sum(each.numel() for each in coder.network.module.parameters()),
        device=str(weight.device),
        dtype=str(weight.dtype).removeprefix("torch."),
        length="causal",
        noise=Noise(mask_id=coder.fim.pad, vocab_size=vocabulary.size),
        sampling=_GREEDY,
        pad_id=coder.fim.pad,
        forbidden_ids=tuple(vocabulary.empty),
        canvas_length=_ANSWER,
        widths=(_ANSWER,),
        threshold=_THRESHOLD,
        match_nats=_MATCH_NATS,
        context_limit=CONTEXT,
        instructions=coder.chat is not None,
    )
