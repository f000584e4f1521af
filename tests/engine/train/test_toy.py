import random
import re
from itertools import pairwise

from engine.train.toy import toy_program

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
