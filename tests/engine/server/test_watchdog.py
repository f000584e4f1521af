"""Progress, or the engine is replaced: limits from what was measured."""

import pytest

from engine.server.watchdog import Watchdog


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def limit_s(dog: Watchdog, clock: Clock, device: str = "cuda:0") -> float:
    """How long a round may take."""
    with dog.round(device):
        began = clock.now
        while not dog.bite():
            clock.now += 0.5
        taken = clock.now - began
        clock.now = began
    return taken


def rounds(dog: Watchdog, clock: Clock, *seconds: float) -> None:
    for taken in seconds:
        with dog.round("cuda:0"):
            clock.now += taken


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def dog(clock: Clock) -> Watchdog:
    return Watchdog(300.0, clock)


def test_a_first_round_may_take_as_long_as_a_load_without_progress(dog, clock):
    assert limit_s(dog, clock) == 120


def test_no_limit_is_above_the_longest(clock):
    assert limit_s(Watchdog(30.0, clock), clock) == 30


@pytest.mark.parametrize(
    ("seconds", "device", "limit"),
    [
        ([40.0, 0.01], "cuda:0", 20),  # the first one also compiles
        ([4.0], "cuda:0", 200),
        ([0.1, 1.0, 0.1], "cuda:0", 50),
        ([0.1, 9.0], "cuda:0", 300),
        ([0.1, 0.1], "cpu", 60),
    ],
)
def test_a_round_may_take_fifty_times_the_slowest(dog, clock, seconds, device, limit):
    rounds(dog, clock, *seconds)
    assert limit_s(dog, clock, device) == limit


def test_another_load_forgets_what_was_measured(dog, clock):
    rounds(dog, clock, 0.1, 0.1)
    with dog.load():
        pass
    assert limit_s(dog, clock) == 120


def test_a_load_may_take_as_long_as_it_comes_further(dog, clock):
    with dog.load() as moved:
        for _ in range(20):
            clock.now += 100
            assert not dog.bite()
            moved()
        clock.now += 120
        assert dog.bite() == "loading the model makes no progress since 120 s"
    assert not dog.bite()


def test_a_load_comes_further_as_long_as_it_reads(clock):
    disk = 0.0
    dog = Watchdog(300.0, clock, lambda: int(disk))
    with dog.load():
        for _ in range(100):
            assert not dog.bite()
            clock.now += 20
            disk += 1e6
        # A page now and then is read by whatever else the process does.
        for _ in range(5):
            assert not dog.bite()
            clock.now += 20
            disk += 4096
        clock.now += 40
        assert dog.bite() == "loading the model makes no progress since 140 s"


def test_what_was_read_between_two_loads_is_no_progress(clock):
    disk = 0
    dog = Watchdog(300.0, clock, lambda: disk)
    with dog.load():
        assert not dog.bite()
    clock.now, disk = clock.now + 1000, 10**9
    with dog.load():
        assert not dog.bite()
        clock.now += 120
        assert dog.bite() == "loading the model makes no progress since 120 s"


def test_at_rest_nothing_hangs(dog, clock):
    rounds(dog, clock, 0.1)
    clock.now += 10_000
    assert not dog.bite()
