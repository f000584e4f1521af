from engine.learn.corpus import package_limits, weight_of

SMALL = [1000] * 160


def limits(python: list[int], npm: list[int] | None = None, weights: dict[int, int] | None = None) -> list[int]:
    sizes = [*python, *(npm or ())]
    of_npm = [at >= len(python) for at in range(len(sizes))]
    return package_limits(sizes, [(weights or {}).get(at, 1) for at in range(len(sizes))], of_npm)


def test_a_large_package_gives_four_percent_and_small_ones_all():
    result = limits([10**6, *SMALL])
    assert result[1:] == SMALL
    assert 0.038 < result[0] / sum(result) <= 0.04


def test_what_is_read_more_often_is_at_most_four_percent_of_what_is_read():
    result = limits([10**6, *SMALL], weights={0: 3})
    assert 0.038 < 3 * result[0] / (2 * result[0] + sum(result)) <= 0.04


def test_few_packages_may_give_more_each():
    assert limits([1000, 900]) == [1000, 900]


def test_scripts_are_at_most_thirteen_percent_unless_there_is_nothing_else():
    result = limits(SMALL, [5000] * 40)
    assert 0.12 < sum(result[160:]) / sum(result) <= 0.13
    assert limits([], [5000] * 40) == [5000] * 40


def test_algorithms_and_utilities_are_read_three_or_four_times():
    assert weight_of("more-itertools") == 4
    assert weight_of("networkx") == 3
    assert weight_of("django") == 1
