import random
import re
from itertools import pairwise

from engine.train.toy import toy_program

LINE = re.compile(r"([a-z]+)(\d+) = ([a-z]+)(\d+) ([-+*/%] \d)")


def test_every_line_follows_from_the_one_above():
    for seed in range(20):
        lines = toy_program(random.Random(seed)).splitlines()[1:]
        parsed = [match.groups() for line in lines if (match := LINE.fullmatch(line))]
        assert len(parsed) == len(lines) >= 39
        assert all(left == right and int(made) == int(used) + 1 for left, made, right, used, _ in parsed)
        for above, below in pairwise(parsed):
            assert (above[0], above[4], int(above[1]) + 1) == (below[0], below[4], int(below[1]))


def test_a_program_is_python():
    compile(toy_program(random.Random(0)), "toy.py", "exec")
