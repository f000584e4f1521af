"""Run several lines at once, each as far as it has to be computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from engine.models.masked.memory import Pass, Window
from engine.models.masked.network import Attend, Network, attention, rotate

TOGETHER = 2048
"""Tokens computed at once, where a line alone has no more: more would need more scratch memory."""


def chunks(windows: Sequence[Window]) -> Iterator[Sequence[Window]]:
    """The windows in order, as many at a time as may be computed together, padding counted."""
    start = longest = 0
    for at, window in enumerate(windows):
        size = window.end - window.start
        longest = max(longest, size)
        if at > start and (at + 1 - start) * longest > TOGETHER:
            yield windows[start:at]
            start, longest = at, size
    if start < len(windows):
        yield windows[start:]


def run_windows(network: Network, windows: Sequence[Window]) -> Tensor:
    """Hidden states [B, T, E] of the computed parts, shorter ones padded at their end."""
    device = network.device
    sizes = [window.end - window.start for window in windows]
    ids = _padded([list(window.line.ids[window.start : window.end]) for window in windows], max(sizes)).to(device)
    starts = torch.tensor([window.start for window in windows], device=device)
    positions = starts[:, None] + torch.arange(max(sizes), device=device)
    return network.run(ids, _attend(network, windows, sizes, positions))


def _attend(network: Network, windows: Sequence[Window], sizes: Sequence[int], positions: Tensor) -> Attend:
    """Every position sees all of its line: what is computed now, and what is remembered before and behind it."""
    before, behind = [window.before for window in windows], [window.behind for window in windows]
    rotation = network.rotation(positions)
    mask = _mask(before, behind, sizes).to(positions.device)
    complete = bool(mask.all())

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        key = rotate(key, rotation)
        for row, window in enumerate(windows):
            if window.kept is not None:
                window.kept.take(key[row], value[row])
        keys, values = (
            torch.cat((_heads(windows, side, index, new), _ends(windows, side, index, new), new), dim=2)
            for side, new in (("keys", key), ("values", value))
        )
        seen = None if complete else mask.to(query.device)
        return attention(rotate(query, rotation), keys, values, seen)

    return attend


def _mask(before: Sequence[int], behind: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Which slots of [before | behind | computed], each padded, are real: bool [B, 1, 1, S]."""
    parts = [torch.arange(max(counts)) < torch.tensor(counts)[:, None] for counts in (before, behind, sizes)]
    return torch.cat(parts, dim=1)[:, None, None, :]


def _heads(windows: Sequence[Window], side: str, index: int, like: Tensor) -> Tensor:
    return _stacked([_of(window.held, side, index, like)[:, : window.before] for window in windows], windows)


def _ends(windows: Sequence[Window], side: str, index: int, like: Tensor) -> Tensor:
    parts: list[Tensor] = []
    for window in windows:
        held = _of(window.held, side, index, like)
        parts.append(held[:, held.shape[1] - window.behind :])
    return _stacked(parts, windows)


def _of(held: Pass | None, side: str, index: int, like: Tensor) -> Tensor:
    """Remembered keys or values [K, T, D] of one layer; T is 0 where nothing is."""
    if held is None:
        return like.new_empty(like.shape[1], 0, like.shape[3])
    return (held.keys if side == "keys" else held.values)[index]


def _stacked(parts: Sequence[Tensor], windows: Sequence[Window]) -> Tensor:
    """[B, K, S, D], shorter ones padded at their end."""
    sizes = [part.shape[1] for part in parts]
    if len(set(sizes)) == 1 and all(window.held is windows[0].held for window in windows):
        return parts[0].expand(len(parts), -1, -1, -1)
    longest = max(sizes)
    return torch.stack([torch.nn.functional.pad(part, (0, 0, 0, longest - part.shape[1])) for part in parts])


def _padded(rows: Sequence[list[int]], width: int) -> Tensor:
    return torch.tensor([row + [0] * (width - len(row)) for row in rows])
