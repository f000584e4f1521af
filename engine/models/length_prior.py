"""How sure a masked model is of a gap at first sight, by the gap's width alone: short gaps look surer than they are.

The method, its function and its constants: "Diffusion LMs Can Approximate Optimal Infilling Lengths Implicitly"
(arXiv:2602.00476), section 4 and appendix A. `python -m engine.cli.calibrate` fits the constants to a model and to its
user's code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.common.errors import ModelError
from engine.common.files import replacing, writing
from engine.common.wire import Wire

NonNegative = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_FAST = np.geomspace(0.2, 4.0, 25)
_SLOW = np.geomspace(0.005, 0.4, 30)
"""Rates per token that are tried in a fit."""


class LengthPrior(Wire, frozen=True, kw_only=True):
    """fast * exp(-fast_rate * width) + slow * exp(-slow_rate * width) + floor, widths in tokens."""

    fast: NonNegative
    fast_rate: NonNegative
    slow: NonNegative
    slow_rate: NonNegative
    floor: NonNegative

    def __call__(self, width: int) -> float:
        """The usual mean probability at a gap of this width, above 0."""
        fast = self.fast * math.exp(-self.fast_rate * width)
        return max(fast + self.slow * math.exp(-self.slow_rate * width) + self.floor, 1e-6)


PUBLISHED_PRIOR = LengthPrior(fast=1.0, fast_rate=1.77, slow=0.56, slow_rate=0.06, floor=0.24)
"""The constants of LLaDA 8B Base on HumanEval, which the paper uses for other models too."""


def fit_prior(usual: Mapping[int, float]) -> LengthPrior:
    """The prior closest to the usual confidence at each width, by least squares. Raises ValueError for less than three
    widths."""
    if len(usual) < 3:
        raise ValueError("at least three widths are needed")
    widths = np.array(sorted(usual), dtype=np.float64)
    values = np.array([usual[int(width)] for width in widths])
    fits = (_fitted(widths, values, fast, slow) for fast, slow in product(_FAST, _SLOW) if fast > slow)
    return min(fits, key=lambda fit: fit[0])[1]


def write_prior(prior: LengthPrior, file: Path) -> None:
    """Write a prior to `file`, where `read_prior` finds it. Raises EngineError; then the file is as before."""
    with writing(file, "make room for it there, or name another folder with DG_LSP_STATE_DIR"):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(prior)) + b"\n")


def read_prior(file: Path) -> LengthPrior | None:
    """The prior in `file`, None where there is none. Raises ModelError for a damaged one."""
    if not file.is_file():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=LengthPrior)
    except (OSError, ValueError):
        raise ModelError(
            f"{file} is no calibration: delete it, or run `python -m engine.cli.calibrate` again."
        ) from None


def prior_file(folder: Path, model: str) -> Path:
    """The file in `folder` for the calibration of a model."""
    return folder / "calibration" / (re.sub(r"[^\w.-]+", "--", model).strip("-") + ".json")


def _fitted(widths: NDArray[Any], values: NDArray[Any], fast: float, slow: float) -> tuple[float, LengthPrior]:
    """The best shares for two given rates, none of them negative, and the squared error."""
    columns = np.stack((np.exp(-fast * widths), np.exp(-slow * widths), np.ones_like(widths)), axis=1)
    best = (math.inf, np.zeros(3))
    for count in (1, 2, 3):
        for used in combinations(range(3), count):
            shares = np.zeros(3)
            shares[list(used)] = np.linalg.lstsq(columns[:, used], values, rcond=None)[0]
            error = float(np.square(columns @ shares - values).sum())
            if (shares >= 0).all() and error < best[0]:
                best = (error, shares)
    error, shares = best
    prior = LengthPrior(
        fast=float(shares[0]),
        fast_rate=float(fast),
        slow=float(shares[1]),
        slow_rate=float(slow),
        floor=float(shares[2]),
    )
    return error, prior
