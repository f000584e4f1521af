from engine.train.shares import PackageSizes, package_limits, weight_of


def sizes(ecosystem: str, *characters: int, weight: int = 1) -> list[PackageSizes]:
    return [PackageSizes(ecosystem=ecosystem, characters=size, weight=weight) for size in characters]


def test_a_large_package_gives_four_percent_and_small_ones_all():
    small = [1000] * 160
    result = package_limits(sizes("python", 10**6, *small))
    assert result[1:] == small
    assert 0.038 < result[0] / sum(result) <= 0.04


def test_what_is_read_more_often_is_at_most_four_percent_of_what_is_read():
    result = package_limits([*sizes("python", 10**6, weight=3), *sizes("python", *[1000] * 160)])
    assert 0.038 < 3 * result[0] / (2 * result[0] + sum(result)) <= 0.04


def test_few_packages_may_give_more_each():
    assert package_limits(sizes("python", 1000, 900)) == [1000, 900]


def test_scripts_are_at_most_thirteen_percent_unless_there_is_nothing_else():
    python, npm = sizes("python", *[1000] * 160), sizes("npm", *[5000] * 40)
    result = package_limits([*python, *npm])
    assert 0.12 < sum(result[160:]) / sum(result) <= 0.13
    assert package_limits(npm) == [5000] * 40


def test_algorithms_and_utilities_are_read_three_or_four_times():
    assert weight_of("more-itertools") == 4
    assert weight_of("networkx") == 3
    assert weight_of("django") == 1
