"""What a model is told of a selection, and what of its answer takes the selection's place."""

from __future__ import annotations

import pytest

from engine.common.marked import gap_at_markers
from engine.common.request import FillRequest
from engine.fill.rewriting.conversation import answered, conversation, is_whole
from engine.fill.rewriting.own_code import own_code
from engine.fill.rewriting.removal import removes
from engine.fill.rewriting.surroundings import surroundings

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


def test_the_model_sees_the_selection_without_its_indentation_and_before_that_what_its_names_mean() -> None:
    talk = conversation(request_of(METHOD, instruction="Make it fast."))
    told, said = talk.messages[1]["content"], talk.messages[-1]["content"]
    assert talk.old == "def find(self, word):\n    return word\n\t\n    # end"
    assert f"```python\n{talk.old}\n```" in said
    assert "class Shelf:" in told
    assert "Make it fast." in said
    assert talk.opening == "```python\n"


def test_nothing_of_the_file_is_told_where_nothing_matters() -> None:
    talk = conversation(request_of("x = 1\n\n▮def find(word):\n    return word▮\n"))
    assert [each["role"] for each in talk.messages] == ["system", "user"]


@pytest.mark.parametrize(
    ("marked", "told"),
    [
        (METHOD, "class Shelf:"),
        ("import re\nimport os\n\n▮print(re.I)▮\n", "import re"),
        ("RATE = 2\nOTHER = 3\n\n\ndef f(x):\n    y = 1\n    ▮z = x * RATE▮\n    return z\n\ny = 2\n",
         "RATE = 2\ndef f(x):\n    y = 1\n...\n    return z"),
        ("class A:\n    def __init__(self):\n        self.b = {}\n        self.c = 1\n\n"
         "    ▮def d(self):\n        self.b▮\n",
         "class A:\n    def __init__(self):\n        self.b = {}"),
        ("struct C {\n    hits: u8,\n}\n\nimpl C {\n    ▮fn hit(&mut self) {}▮\n}\n",
         "struct C {\n    hits: u8,\n}\nimpl C {"),
        ("def used(a): ...\ndef unused(a): ...\n▮used(1)▮\n", "def used(a): ..."),
        ("type T = { a: number };\ntype U = string;\n▮const f = (t: T) => t.a;▮\n", "type T = { a: number };"),
    ],
)  # fmt: skip
def test_of_the_file_the_model_is_told_what_the_selection_is_in_and_what_its_names_mean(marked: str, told: str) -> None:
    assert "\n...\n".join(filter(None, surroundings(request_of(marked)))) == told


@pytest.mark.parametrize(
    ("marked", "said", "own"),
    [
        ("import os\n\n\ndef f(a):\n    ▮b = os.x\n    return b▮\n\ndef g():\n    pass\n",
         "import pathlib\nimport sys\n\ndef f(a):\n    b = pathlib.x\n    return b\n\ndef g():\n    return 1\n",
         "import pathlib\n\nb = pathlib.x\nreturn b"),
        ("import a\n\n▮def f():\n    return 1▮\n\n\ndef g():\n    return 2\n",
         "import a\n\nasync def f():\n    return 1\n\n@x\nasync def g():\n    return 3\n",
         "async def f():\n    return 1"),
        ("class A:\n    def __init__(self):\n        pass\n\n    ▮def f(self):\n        return 1▮\n",
         "class A:\n    def __init__(self):\n        self.x = 1\n\n    @cache\n    def f(self):\n        return 2\n",
         "@cache\ndef f(self):\n    return 2"),
        ("impl A {\n    ▮fn f(&self) -> u8 {\n        1\n    }▮\n}\n",
         "impl A {\n    fn f(&self) -> u8 {\n        2\n    }\n}",
         "fn f(&self) -> u8 {\n    2\n}"),
        ("▮struct P;▮\n\nimpl P {\n}\n", "struct P;\n\nimpl Display for P {\n}",
         "struct P;\n\nimpl Display for P {\n}"),
        ("▮def f():\n    return 1▮\n", "def helper():\n    return 1\n\ndef f():\n    return helper()",
         "def helper():\n    return 1\n\ndef f():\n    return helper()"),
        ("def g():\n    pass\n\n▮x = g()▮\n", "def g():\n    return 2", "def g():\n    return 2"),
    ],
)  # fmt: skip
def test_what_stands_elsewhere_in_the_file_is_no_part_of_an_answer(marked: str, said: str, own: str) -> None:
    assert own_code(request_of(marked), said) == own


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
        ("Sure, here is the code:\n", None),
        ("I'm sorry, but I can't do that.", None),
        ("\n```", None),
        ("```", None),
    ],
)  # fmt: skip
def test_an_answer_is_indented_as_the_selection_was_and_holds_code_alone(said: str, new: str | None) -> None:
    assert answered(request_of(METHOD), said, "\n```") == new


@pytest.mark.parametrize(
    ("said", "new"),
    [
        ("@cache\ndef f(self):\n    return 1", "@cache\n    def f(self):\n        return 1"),
        ("x = 1\n\ndef f(self):\n    return 2", "x = 1\n\n    def f(self):\n        return 2"),
        ("g = 2\ndef f(self):\n    return 1", "g = 2\n    def f(self):\n        return 1"),
        ("g = 2", "g = 2"),
    ],
)
def test_a_line_that_stays_is_indented_where_another_is_the_first_now(said: str, new: str) -> None:
    request = request_of("class A:\n    ▮def f(self):\n        return 1\n    g = 2▮\n")
    assert answered(request, f"{said}\n```", "\n```") == new


def test_a_selection_within_a_line_is_taken_as_it_is() -> None:
    request = request_of("total = ▮a + b▮ * 2\n")
    assert conversation(request).old == "a + b"
    assert answered(request, "(a + b)\n```", "\n```") == "(a + b)"


@pytest.mark.parametrize(
    ("marked", "said", "new"),
    [
        ("y = ▮f(1▮, 3)\n", "y = f(2, 3)\n```", "f(2"),
        ("y = f(▮1▮, 3)\n", "2\n```", "2"),
        ("def f():\n    ▮a = 1\n    b = g(▮3)\n", "a = 2\nb = g(3)\n```", "a = 2\n    b = g("),
        ("▮a = ▮b\n", "a = b\n```", "a = "),
        ("x = ▮[1]▮ + [2]\n", "[1] + [2]\n```", "[1]"),
        ("f(▮x▮)\n", "g(x)\n```", "g(x)"),
        ("f(▮x▮, 1)\n", "f(y, 1)\n```", "y"),
        ("return ▮x▮;\n", "return y;\n```", "y"),
        ("return ▮x▮;\n", "y\n```", "y"),
    ],
)
def test_what_stands_beside_a_selection_in_its_lines_is_no_part_of_an_answer(marked: str, said: str, new: str) -> None:
    assert answered(request_of(marked), said, "\n```") == new


@pytest.mark.parametrize(
    ("marked", "said", "new"),
    [
        ("function f() {\n  ▮a(1);▮\n}\n", "a(2);\n}\n```", "a(2);"),
        ("function f() {\n  ▮a(1);▮\n}\n", "if (b) {\n  a(2);\n}\n```", "if (b) {\n    a(2);\n  }"),
        ("g(() => {\n  ▮a(1);▮\n  }\n});\n", "a(2);\n}\n});\n```", "a(2);"),
    ],
)
def test_closers_after_a_selection_are_no_part_of_an_answer_that_does_not_open_them(
    marked: str, said: str, new: str
) -> None:
    assert answered(request_of(marked, language="javascript"), said, "\n```") == new


@pytest.mark.parametrize("said", ["```python\nx = 2\n```", "x = 2\n```\n\nOr:\n\n```python\nx = 3\n```"])
def test_an_answer_with_more_fences_is_its_first_code(said: str) -> None:
    assert answered(request_of("▮x = 1▮\n"), said, "\n```") == "x = 2"


@pytest.mark.parametrize(
    "said",
    [
        "Here is the code:\n```python\nx = 2\n```",
        "Here’s the rewritten code:\n\n```\nx = 2\n```\n\nIt is 2 now.",
        "Sure! I changed it.\n```py\nx = 2\n```",
        "Certainly! Below is the code.\nIt sets x.\n\n```python\nx = 2\n```\nOr:\n```python\nx = 3\n```",
        "Here is the code:\n```\n\n```python\nx = 2\n```\nIt is 2 now.",
        "```\nHere is the code:\n```python\nx = 2\n```",
        "The rewritten code is as follows:\n```python\nx = 2",
        "Hier ist der Code:\n```python\nx = 2\n```",
        "以下是代码：\n```\nx = 2\n```",
    ],
)
def test_of_prose_with_code_in_a_fence_the_code_is_the_answer(said: str) -> None:
    assert answered(request_of("▮x = 1▮\n"), said, "\n```") == "x = 2"


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry, I can't do that. The code is:\n```python\nx = 1\n```",
        "Here is the code:\nx = 2\n```\nIt sets x to 2",
        "Here is how to do that:\n```bash\npip install x\n```",
        "Sure, here is what it does:\n```\n```",
        "Here is the code:\n```python\nI'm sorry, but I can't do that.\n```",
        "Here is the code:\n```python\nHere is the code:\n```",
        "```\nThe code is right.",
    ],
)
@pytest.mark.parametrize("language", ["python", "brainfuck"])
def test_of_prose_without_code_in_a_fence_nothing_is_an_answer(said: str, language: str) -> None:
    assert answered(request_of("▮x = 1▮\n", language=language), said, "\n```") is None


@pytest.mark.parametrize(
    ("said", "is_whole_now"),
    [
        ("x = 2", False),
        ("x = 2\n```", True),
        ("\n```", True),
        ("Here is the code:\n```", False),
        ("Here is the code:\n```python\nx = 2", False),
        ("Here is the code:\n```python\nx = 2\n```", True),
        ("Here is the code:\n```\n\n```", False),
        ("Here is the code:\n```\n\n```python\nx = 2\n```", True),
    ],
)
def test_an_answer_is_whole_where_its_code_ends(said: str, is_whole_now: bool) -> None:
    assert is_whole(request_of("▮x = 1▮\n"), said, "\n```") == is_whole_now


@pytest.mark.parametrize("said", ["", "\n", "```", "\n```", "```\nIt is gone."])
@pytest.mark.parametrize(
    ("instruction", "new"),
    [("Remove these prints", ""), ("delete the dead code.", ""), ("Lösche das", ""), ("删除这些", ""),
     ("Make it fast", None), ("", None)],
)  # fmt: skip
def test_nothing_is_an_answer_where_removal_is_asked_for(said: str, instruction: str, new: str | None) -> None:
    request = request_of("▮print(1)▮\nx = 2\n", instruction=instruction)
    assert answered(request, said, "\n```") == new
    assert ("leave the block empty" in conversation(request).messages[-1]["content"]) == (new is not None)


def test_what_reads_as_the_line_below_it_is_an_answer() -> None:
    request = request_of("▮print(value.strip())▮\nprint(value)\n", instruction="Remove the strip")
    assert answered(request, "print(value)\n```", "\n```") == "print(value)"


@pytest.mark.parametrize(
    "instruction",
    [
        *("Use a dropdown", "Apply dropout 0.1", "implement drag and drop", "Use stripe for payments"),
        *("use Gaussian elimination", "borrow the string instead of cloning it", "Berechne die Entfernung in Metern"),
        *("add a delete button", "raise if deleted_at is set", "do not remove anything, only rename x"),
        *("Simplify, but don't delete the comment", "不要删除注释", ""),
    ],
)
def test_who_speaks_of_removal_need_not_ask_for_it(instruction: str) -> None:
    assert not removes(instruction)


@pytest.mark.parametrize(
    "instruction",
    [
        *("Remove the prints", "please delete this", "Simplify it and remove the prints", "Get rid of it"),
        *("Entferne die Ausgaben", "Bitte lösche das", "Die Ausgaben entfernen.", "Supprime les impressions"),
        *("Elimina los prints", "Удали это", "删除打印", "削除して", "取り除く"),
    ],
)
def test_removal_is_asked_for_in_several_languages(instruction: str) -> None:
    assert removes(instruction)


@pytest.mark.parametrize(
    ("marked", "language", "said"),
    [
        ("const a = ▮`hello ${x}`▮;\n", "javascript", "`Here is ${x}`"),
        ("▮`hello ${x}`▮\n", "javascript", "`Here is ${x}`"),
        ('def f():\n    """▮Sum.▮"""\n', "python", "This function is the sum of values."),
        ("<p>▮The class starts at nine.▮</p>\n", "html", "The class is at ten now."),
        ("▮This code is sold.▮\n", "tex", "This code is bought."),
        ("▮ok, err := f()▮\n", "go", "okay, err := f()"),
        ("▮x = 1▮\n", "python", "certainly = 1"),
        ("▮x is None▮\n", "python", "below is None"),
    ],
)
def test_code_that_reads_like_prose_is_an_answer(marked: str, language: str, said: str) -> None:
    assert answered(request_of(marked, language=language), f"{said}\n```", "\n```") == said


@pytest.mark.parametrize("said", ["I'm sorry, I can't.", "Here is the code:", "Sure, it is removed.\n```\nDone."])
def test_a_refusal_to_remove_is_no_empty_answer(said: str) -> None:
    assert answered(request_of("▮print(1)▮\n", instruction="Remove this"), said, "\n```") is None


def test_code_of_markdown_stays_in_its_fence() -> None:
    request = request_of("Do:\n\n▮```sh\nls\n```▮\n", language="markdown")
    assert answered(request, "```sh\nls -l\n```\n````", "\n````") == "```sh\nls -l\n```"
    assert answered(request, "```sh\nls -l\n```", "\n````") == "```sh\nls -l\n```"


def test_a_shorter_fence_ends_an_answer_that_nothing_else_ends() -> None:
    request = request_of('▮"""\n```\nls\n```\n"""\nx = 1▮\n')
    assert answered(request, '"""\n```\nls\n```\n"""\nx = 2\n```', "\n````") == '"""\n```\nls\n```\n"""\nx = 2'


def test_markdown_may_get_fences() -> None:
    request = request_of("▮Words.▮\n", language="markdown")
    talk = conversation(request)
    assert answered(request, "Words:\n\n```sh\nls\n```\n\nEnd.\n````", talk.closing) == (
        "Words:\n\n```sh\nls\n```\n\nEnd."
    )


@pytest.mark.parametrize(
    ("language", "said", "new"),
    [
        ("markdown", "Here is the list.", "Here is the list."),
        ("markdown", "I'm sorry, but I can't do that.", None),
        ("python", "Here is the list.", None),
        ("python", "# I'm sorry, but I can't do that.", None),
        ("python", '"""Sorry, I can\'t."""', None),
        ("javascript", "// As an AI model, I cannot", None),
        ("python", "# Here is the list.\nx = 2", "# Here is the list.\nx = 2"),
    ],
)
def test_a_refusal_is_no_answer_nor_is_prose_where_code_is_meant(language: str, said: str, new: str | None) -> None:
    assert answered(request_of("▮x = 1▮\n", language=language), f"{said}\n```", "\n```") == new


def test_strings_of_several_lines_stay_as_they_are() -> None:
    request = request_of('class A:\n    ▮x = """\nfree\n  text\n"""▮\n')
    assert answered(request, 'x = """\nfree\n  text\n"""\ny = 2\n```', "\n```") == (
        'x = """\nfree\n  text\n"""\n    y = 2'
    )


@pytest.mark.parametrize("said", ["def f(self):\n    if a:\n        return 2", "def f(self):\n  if a:\n    return 2"])
def test_what_is_indented_by_tabs_stays_so(said: str) -> None:
    request = request_of("class A:\n\t▮def f(self):\n\t\treturn 1▮\n")
    assert answered(request, f"{said}\n```", "\n```") == "def f(self):\n\t\tif a:\n\t\t\treturn 2"
