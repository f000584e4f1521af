"""What the model is told to fix."""

from __future__ import annotations

from dg_lsp.edits.rewrites import fix_instruction


def test_a_long_report_is_cut_in_its_middle() -> None:
    assert fix_instruction("x" * 2000) == f"Fix this problem: {'x' * 2000}"
    told = fix_instruction(f"Type A is wrong, {'x' * 60_000} as B is missing.")
    assert told.startswith("Fix this problem: Type A is wrong, xx")
    assert told.endswith("xx as B is missing.")
    assert "xx\n...\nxx" in told
    assert len(told) < 2100
