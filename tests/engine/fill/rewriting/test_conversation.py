"""What a model is told of a selection, and what of its answer takes the selection's place."""

from __future__ import annotations

import pytest

from engine.common.marked import gap_at_markers
from engine.common.request import FillRequest
from engine.fill.rewriting.conversation import answered, conversation

METHOD = """\
import re
from typing import Any

class Shelf:
    def size(self):
        return 1

    ▮def find(self, word):
        return word
\t
        # end▮

    def last(self):
        return 2
"""

SAME = "def find(self, word):\n        return word\n\t\n        # end"
FOUND = "def find(self):\n        pass"


def request_of(marked: str, **more: str) -> FillRequest:
    gap = gap_at_markers(marked)
    return FillRequest(
        prefix=gap.prefix, old=gap.old, suffix=gap.suffix, task="rewrite", **{"language": "python", **more}
    )


def test_the_model_sees_the_selection_without_its_indentation_and_what_is_around_it() -> None:
    talk = conversation(request_of(METHOD, instruction="Make it fast."))
    said = talk.messages[-1]["content"]
    assert talk.old == "def find(self, word):\n    return word\n\t\n    # end"
    assert f"```python\n{talk.old}\n```" in said
    assert "def size(self):\n        return 1" in said
    assert "def last(self):" in said
    assert "Make it fast." in said
    assert said.index("def last") < said.index("Make it fast.")
    assert talk.opening == "```python\n"


def test_imports_that_are_far_off_are_told() -> None:
    far = METHOD.replace("class Shelf:", "x = 1\n" * 500 + "class Shelf:")
    said = conversation(request_of(far)).messages[-1]["content"]
    assert "import re\nfrom typing import Any" in said
    assert said.count("x = 1") < 300


def test_a_selection_with_fences_gets_a_longer_one() -> None:
    talk = conversation(request_of('▮"""\n```sh\nls\n```\n"""▮\n'))
    assert talk.opening == "````python\n"
    assert answered(request_of('▮"""\n```\n"""▮'), '"""\n```\nmore\n"""\n````\nProse.', talk.closing) == (
        '"""\n```\nmore\n"""'
    )


@pytest.mark.parametrize(
    ("said", "new"),
    [
        ("def find(self):\n    return 3\n```", "def find(self):\n        return 3"),
        ("def find(self):\n    return 3\n```\nThis is better because", "def find(self):\n        return 3"),
        ("    def find(self):\n        return 3", "def find(self):\n        return 3"),
        ("def find(self):\n\n    return 3\n\n```", "def find(self):\n\t\n        return 3"),
        ("def find(self, word):\n    return word\n\n    # end\n```", SAME),
        ("class Shelf:\n    def size(self):\n        return 1\n\n    def find(self):\n        pass\n```", FOUND),
        ("def find(self):\n    pass\n\ndef last(self):\n    return 2\n```", FOUND),
        ("class Shelf:\n    def size(self):\n        return 1\n    def find(self):\n        pass\n```", FOUND),
        ("Sure, here is the code:\n", ""),
        ("I'm sorry, but I can't do that.", ""),
        ("\n```", ""),
        ("```", ""),
    ],
)  # fmt: skip
def test_an_answer_is_indented_as_the_selection_was_and_holds_code_alone(said: str, new: str) -> None:
    assert answered(request_of(METHOD), said, "\n```") == new


def test_a_selection_within_a_line_is_taken_as_it_is() -> None:
    request = request_of("total = ▮a + b▮ * 2\n")
    assert conversation(request).old == "a + b"
    assert answered(request, "(a + b)\n```", "\n```") == "(a + b)"


def test_carriage_returns_are_not_the_models_business() -> None:
    request = request_of("x = 1\r\n    ▮if x:\r\n        y = 2▮\r\n")
    assert "\r" not in conversation(request).messages[-1]["content"]
    assert answered(request, "if x:\n    y = 3", "\n```") == "if x:\n        y = 3"
