"""Batches by step number, made in advance by other processes where the model would have to wait for them."""

from __future__ import annotations

import multiprocessing
import random
import signal
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from numpy.typing import NDArray

from engine.train.canvases import Canvases, canvas_batch
from engine.train.corpus import Split
from engine.train.next_token import NextTokens, next_token_batch
from engine.train.packed import PackedCorpus
from engine.train.presets import Preset
from engine.train.tokenizer import load_tokenizer

Batch = NextTokens | Canvases
AHEAD = 2
"""Batches a worker that are made before they are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSource:
    """Makes the batch of any step: the same arguments give the same batch, in any process."""

    corpus: Path
    preset: Preset
    seed: int

    def batch(self, step: int, phase: int, split: Split = "train") -> Batch:
        """The batch of a step in phase 0 (next tokens) or 1 (canvases)."""
        rng = random.Random(f"{self.seed}/{split}/{step}")
        packed = _packed(self.corpus, split)
        if phase == 0:
            return next_token_batch(packed, self.preset, rng)
        return canvas_batch(packed, _tokenizer(self.corpus), self.preset, rng)


class Batches:
    """The batches of consecutive steps, on `device`."""

    def __init__(
        self, source: BatchSource, plan: Callable[[int], int | None], device: torch.device, workers: int
    ) -> None:
        """`plan`: the phase of a step, None behind the last one. `workers` 0 makes batches when they are asked for."""
        self._source, self._plan, self._device = source, plan, device
        self._waiting: deque[tuple[int, Future[tuple[type[Any], dict[str, NDArray[Any]]]]]] = deque()
        self._room = workers * AHEAD
        self._pool = (
            ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin_worker) if workers else None
        )

    def take(self, step: int) -> Batch:
        """The batch of `step`, which follows the last one that was taken."""
        phase = self._plan(step)
        if phase is None:
            raise IndexError(step)
        if self._pool is None:
            return to_device(self._source.batch(step, phase), self._device)
        self._order(self._pool, step)
        _, future = self._waiting.popleft()
        kind, arrays = future.result()
        return to_device(kind(**{name: torch.from_numpy(array) for name, array in arrays.items()}), self._device)

    def _order(self, pool: ProcessPoolExecutor, step: int) -> None:
        following = self._waiting[-1][0] + 1 if self._waiting else step
        while len(self._waiting) < self._room and (phase := self._plan(following)) is not None:
            self._waiting.append((following, pool.submit(_arrays, self._source, following, phase)))
            following += 1

    def __enter__(self) -> Batches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """The same batch with its tensors on `device`."""
    if device.type == "cpu":
        return batch
    moved = {each.name: getattr(batch, each.name).pin_memory().to(device, non_blocking=True) for each in fields(batch)}
    return replace(batch, **moved)


def _arrays(source: BatchSource, step: int, phase: int) -> tuple[type[Any], dict[str, NDArray[Any]]]:
    # Tensors would travel through shared memory, one open file each.
    batch = source.batch(step, phase)
    return type(batch), {each.name: getattr(batch, each.name).numpy() for each in fields(batch)}


def _begin_worker() -> None:
    # An interrupt at the terminal reaches the whole group; the run decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


@cache
def _packed(corpus: Path, split: Split) -> PackedCorpus:
    return PackedCorpus(corpus / "packed" / split)


@cache
def _tokenizer(corpus: Path) -> Any:
    return load_tokenizer(corpus / "tokenizer")
