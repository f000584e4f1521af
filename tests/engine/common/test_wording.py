"""Formatting of text for people."""

from engine.common.wording import WIDTH, counted, joined, wrapped


def test_one_thing_is_one():
    assert [counted(count, "token") for count in (0, 1, 2, 5000)] == ["0 tokens", "1 token", "2 tokens", "5,000 tokens"]
    assert counted(2, "forward pass", "forward passes") == "2 forward passes"


def test_lines_fit_a_narrow_terminal_and_lose_nothing():
    text = " ".join(f"word{at}" for at in range(60))
    for lines in (wrapped(text, "BAD subject  "), wrapped(text, indent=10)):
        assert max(map(len, lines.splitlines())) <= WIDTH
        assert lines.split()[-60:] == text.split()
    path = "/" + "x" * 100
    assert wrapped(f"in {path} it is").split() == ["in", path, "it", "is"]
    assert wrapped("", "ok  subject ") == "ok  subject"
    parts = [f"part {at} of it all" for at in range(12)]
    assert max(map(len, joined(parts, " · ").splitlines())) <= WIDTH
    assert [part for line in joined(parts, " · ").splitlines() for part in line.split(" · ")] == parts
