"""Fitting a model's length prior to code."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.cli.calibrate import TOO_NEAR, main, usual_confidence
from engine.fill.loading import load
from engine.lab.eval.tasks import EvalTask
from engine.models.length_prior import prior_file, read_prior
from tests.engine.models.masked.published import write_published
from tests.engine.ruler import Ruler

ROOT = Path(__file__).parents[3]


def test_a_calibration_is_fitted_kept_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path / "state"))
    model = str(write_published(tmp_path / "model", "dream-coder"))
    assert load(model, "cpu").model.info.prior is None
    result = CliRunner().invoke(main, [str(ROOT / "engine" / "syntax"), "--model", model, "--gaps", "5"])
    assert result.exit_code == 0, result.output
    kept = read_prior(prior_file(tmp_path / "state", model))
    assert kept is not None
    assert load(model, "cpu").model.info.prior == kept


def test_what_needs_no_calibration_is_refused(tmp_path: Path):
    model = str(write_published(tmp_path / "model", "dreamon"))
    result = CliRunner().invoke(main, [str(ROOT / "engine"), "--model", model])
    assert result.exit_code == 2
    assert "finds widths by expand; only `calibrated` needs a calibration" in result.output


def test_widths_near_the_true_one_do_not_count():
    """The ruler is sure from the true width on, and of nothing below it."""
    model = Ruler("x = ▮a+b+c+d+e+f+g+h▮;\n", length="calibrated", widths=(8,))
    task = EvalTask(name="", kind="", language="", prefix="x = ", suffix=";\n", truth="a+b+c+d+e+f+g+h")
    usual = usual_confidence(model, [task])
    assert 15 not in usual
    assert all(abs(width - 15) > TOO_NEAR for width in usual)
    assert usual[8] < 0.1 < usual[24]
