import random
import re
from itertools import pairwise, product

from tests.engine.toys.language import LATEST_START, RULES, program, rules, toy_program

LINE = re.compile(r"([a-z]) = ([a-z]) ([-+*/%] \d)")


def test_every_line_follows_from_the_one_above():
    for seed in range(20):
        lines = toy_program(random.Random(seed)).splitlines()[1:]
        parsed = [match.groups() for line in lines if (match := LINE.fullmatch(line))]
        assert len(parsed) == len(lines) >= 22
        assert all(ord(made) == ord(used) + 1 for made, used, _ in parsed)
        for above, below in pairwise(parsed):
            assert (above[0], above[2]) == (below[1], below[2])


def test_a_program_is_python():
    compile(toy_program(random.Random(0)), "toy.py", "exec")


def test_every_gap_has_one_answer():
    """Held against all programs that there are, from the third line on."""
    programs = [program(*parts) for parts in product(RULES, range(LATEST_START + 1), range(2, 10))]
    rng = random.Random(0)
    for _ in range(300):
        text = toy_program(rng, "held-out")
        start, end = sorted(rng.sample(range(len("a = 2\nb = a + 2\n"), len(text)), 2))
        prefix, suffix = text[:start], text[end:]
        fitting = (other for other in programs if other.startswith(prefix) and other.endswith(suffix))
        assert {other[start : len(other) - len(suffix)] for other in fitting} == {text[start:end]}


def test_no_line_of_a_held_out_program_can_be_known_by_heart():
    known, new = set(rules("train")), set(rules("held-out"))
    assert not known & new
    assert known | new == {*RULES}
    assert {rule[0] for rule in new} == {rule[0] for rule in known} == {*"+-*/%"}
    assert {rule[-1] for rule in new} <= {rule[-1] for rule in known}
    assert all(line[6:] in new for line in toy_program(random.Random(1), "held-out").splitlines()[1:])
