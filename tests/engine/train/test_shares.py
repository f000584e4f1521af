from engine.train.shares import PackageSizes, package_limits


def sizes(ecosystem: str, *characters: int, favoured: bool = False) -> list[PackageSizes]:
    return [PackageSizes(ecosystem=ecosystem, characters=size, favoured=favoured) for size in characters]


def given(packages: list[PackageSizes]) -> list[int]:
    return [min(p.characters, limit) for p, limit in zip(packages, package_limits(packages), strict=True)]


def test_a_large_package_gives_eight_percent_and_small_ones_all():
    small = [1000] * 50
    result = given(sizes("python", 10**6, *small))
    assert result[1:] == small
    assert 0.075 < result[0] / sum(result) <= 0.08


def test_the_favoured_package_gives_two_and_a_half_times_as_much():
    packages = sizes("python", 10**6, *[1000] * 50) + sizes("python", 10**6, favoured=True)
    result = given(packages)
    assert abs(result[-1] - 2.5 * result[0]) <= 2


def test_scripts_are_at_most_a_fifth_unless_there_is_nothing_else():
    python, npm = sizes("python", *[1000] * 40), sizes("npm", *[5000] * 30)
    result = given([*python, *npm])
    assert 0.19 < sum(result[40:]) / sum(result) <= 0.2
    assert given(npm) == [5000] * 30
