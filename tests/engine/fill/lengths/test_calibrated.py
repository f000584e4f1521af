"""A gap whose width is seen at first sight."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from engine.common.errors import EngineError, ModelError
from engine.models.length_prior import PUBLISHED_PRIOR, LengthPrior, fit_prior, prior_file, read_prior, write_prior
from tests.engine.fill.lengths.test_expand import LETTERS, text_of
from tests.engine.ruler import Ruler

FLAT = LengthPrior(fast=0, fast_rate=1, slow=0, slow_rate=1, floor=1)
WIDTHS = (1, 4, 8, 16, 32)


@pytest.mark.parametrize("tokens", [1, 5, 8, 19, 35])
def test_the_width_that_fits_is_climbed_to(tokens: int):
    model = Ruler(text_of(tokens), length="calibrated", widths=WIDTHS, prior=FLAT)
    filled = model.fill()
    assert filled.candidates[0].text == "+".join(LETTERS)[:tokens]
    assert filled.width == tokens


def test_confidence_counts_by_what_is_usual_for_its_width():
    """Where wide gaps are hardly ever sure, a wide one that is half sure beats a narrow one that is."""
    steep = LengthPrior(fast=0, fast_rate=1, slow=1, slow_rate=0.3, floor=0)
    model = Ruler(text_of(20), length="calibrated", widths=WIDTHS, prior=steep)
    model.fill(max_tokens=32)
    assert model.widths[-1] == 32


def test_no_width_beyond_what_is_allowed_is_looked_at():
    model = Ruler(text_of(20), length="calibrated", widths=WIDTHS, prior=FLAT)
    assert model.fill(max_tokens=6).width <= 6


def test_a_fit_finds_the_constants_again():
    truth = LengthPrior(fast=0.6, fast_rate=1.0, slow=0.3, slow_rate=0.05, floor=0.2)
    fitted = fit_prior({width: truth(width) for width in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)})
    assert all(abs(fitted(width) - truth(width)) < 0.01 for width in range(1, 65))


def test_a_fit_of_a_flat_line_is_flat():
    fitted = fit_prior({1: 0.5, 8: 0.5, 64: 0.5})
    assert {round(fitted(width), 6) for width in (1, 3, 30)} == {0.5}


def test_too_few_widths_are_refused():
    with pytest.raises(ValueError, match="at least three"):
        fit_prior({1: 0.5, 2: 0.4})


def test_a_calibration_is_kept_by_the_name_of_its_model(tmp_path: Path):
    file = prior_file(tmp_path, "Dream-org/Dream-Coder-v0-Base-7B")
    assert file.name == "Dream-org--Dream-Coder-v0-Base-7B.json"
    assert read_prior(file) is None
    write_prior(PUBLISHED_PRIOR, file)
    assert read_prior(file) == PUBLISHED_PRIOR
    file.write_text('{"fast": 1}')
    with pytest.raises(
        ModelError, match=r"is no calibration: delete it, or run `python -m engine.cli.calibrate` again"
    ):
        read_prior(file)


def test_a_calibration_that_can_not_be_written_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = prior_file(tmp_path, "model")
    write_prior(FLAT, file)

    def cut(self: Path, data: bytes) -> int:
        with self.open("wb") as stream:
            stream.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", cut)
    told = re.escape(f"{file} can't be written to (No space left on device)") + ".*DG_LSP_STATE_DIR"
    with pytest.raises(EngineError, match=told):
        write_prior(PUBLISHED_PRIOR, file)
    assert read_prior(file) == FLAT


def test_a_folder_that_can_not_be_made_is_told(tmp_path: Path):
    (tmp_path / "calibration").touch()
    with pytest.raises(EngineError, match=r"model\.json can't be written to \("):
        write_prior(FLAT, prior_file(tmp_path, "model"))
