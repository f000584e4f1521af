import json
from pathlib import Path

from engine.learn.screening import Forbidden, benchmark_texts, shingles

TASK = {
    "task_id": "SingleLine/0",
    "prompt": 'def longest(words):\n    """The longest of the given words, the first one of several."""\n',
    "canonical_solution": "    return max(words, key=len)\n",
    "suffix": "",
    "test": "def check(candidate):\n    assert candidate(['fig', 'date', 'plum', 'kiwi', 'pear', 'lime']) == 'date'\n",
    "entry_point": "longest",
}
OWN = "".join(f"value_{i} = compute({i})\n" for i in range(40))


def objection(forbidden: Forbidden, text: str) -> str | None:
    return forbidden.objection(text, shingles(text))


def test_ten_words_in_a_row_of_a_task_or_its_tests_are_too_many(tmp_path: Path):
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(TASK) + "\n", encoding="utf-8")
    forbidden = Forbidden(benchmark_texts([path]))
    assert objection(forbidden, OWN) is None
    assert (
        objection(forbidden, OWN + "# the LONGEST, of the given words: the first one of several; return\n")
        == "contaminated"
    )
    assert objection(forbidden, OWN + "# of the given words: the first one of several\n" + OWN) is None
    assert objection(forbidden, OWN + "x = 'fig date plum kiwi pear lime date'\n") is None
    assert objection(forbidden, OWN + TASK["test"]) == "contaminated"
    across = TASK["prompt"].splitlines()[-1] + TASK["canonical_solution"]
    assert objection(forbidden, OWN + across) == "contaminated"


def test_a_fifth_of_a_files_lines_may_be_a_reserved_packages():
    reserved = "".join(f"    rest_{i} = left_over({i})\n" for i in range(40))
    forbidden = Forbidden(reserved=[reserved])
    assert objection(forbidden, OWN + "".join(reserved.splitlines(True)[:8])) is None
    assert objection(forbidden, OWN + "".join(reserved.splitlines(True)[:20])) == "reserved content"
    assert objection(forbidden, reserved.replace("    ", "\t\t")) == "reserved content"
