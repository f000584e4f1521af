"""Cases by hand: each says itself what is right."""

import pytest

from engine.lab.eval.evaluation import is_clean, run_tests
from engine.lab.eval.hand.cases import hand_cases
from engine.lab.eval.tasks import EvalTask

CASES = hand_cases()


def test_there_are_twenty_in_several_languages():
    assert len(CASES) == len({case.name for case in CASES}) == 20
    assert {case.language for case in CASES} == {"python", "typescript", "javascript", "rust", "go"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_truth_is_right_and_nothing_is_wrong(case: EvalTask):
    assert bool(case.asserts) != bool(case.right)
    assert is_clean(case, case.truth)
    if case.right:
        assert case.truth.strip() in case.right
        assert "" not in case.right
        return
    right, nothing = run_tests(case, case.truth), run_tests(case, "")
    assert right is not None
    assert right.passed, right.reason
    assert nothing is not None
    assert not nothing.passed
