from pathlib import Path
from random import Random

import pytest

from engine.common.errors import BadInput
from engine.learn.corpus import Document
from engine.learn.packed import PackedCorpus, documented_functions, pack
from engine.learn.tokenizer import save_tokenizer, train_tokenizer
from tests.engine.learn.packages import python_code, script_code

DOCUMENTS = [
    Document(split="train", language="python", package="a", path="b.py", text=python_code("alpha", 5) + "# 😋\n"),
    Document(split="train", language="python", package="a", path="a.py", text=python_code("gamma", 5), weight=3),
    Document(split="train", language="javascript", package="b", path="b.js", text=script_code("beta", 5)),
    Document(split="train", language="typescript", package="b", path="b.ts", text="let é = 1\n"),
]
TOKENIZER = train_tokenizer([d.text for d in DOCUMENTS], 400)


@pytest.fixture
def packed(tmp_path: Path) -> PackedCorpus:
    save_tokenizer(TOKENIZER, tmp_path / "tokenizer")
    pack(DOCUMENTS, tmp_path / "packed" / "train")
    return PackedCorpus(tmp_path, "train")


def test_each_document_is_found_again(packed: PackedCorpus):
    assert len(packed) == 4
    by_path = {document.text: document for document in DOCUMENTS}
    assert [by_path[packed.text(index)].path for index in range(4)] == ["a.py", "b.py", "b.js", "b.ts"]
    assert all(packed.language(index) == by_path[packed.text(index)].language for index in range(4))


def test_what_weighs_more_is_drawn_more_often(packed: PackedCorpus):
    rng = Random(0)
    drawn = [packed.choose(rng) for _ in range(2000)]
    best = [packed.choose(rng, best=True) for _ in range(2000)]
    lengths = [len(packed.text(index).encode()) for index in range(4)]
    heavy = 3 * lengths[0] / (sum(lengths) + 2 * lengths[0])
    assert drawn.count(0) / 2000 == pytest.approx(heavy, abs=0.05)
    assert best.count(0) > drawn.count(0) + 100


def test_neighbours_are_of_the_same_package(packed: PackedCorpus):
    assert [packed.neighbours(index) for index in range(4)] == [[1], [0], [3], [2]]


def test_functions_with_a_docstring_are_found_to_their_end():
    text = (
        "def bare(a):\n    return a\n\n\n"
        'def told(a, b=(1, 2)) -> int:\n    """What it does."""\n    if a:\n\n        return b\n\n    return a\n\n\n'
        'class C:\n    async def m(\n        self,\n    ):\n        "Short."\n        return 1\n\n    x = 2\n'
    )
    found = [text[start:end] for start, end in documented_functions(text, "python")]
    assert [(part.split("(")[0], part.splitlines()[-1]) for part in found] == [
        ("def told", "    return a"),
        ("    async def m", "        return 1"),
    ]


def test_functions_behind_a_comment_are_found_to_their_brace():
    text = "/**\n * Adds.\n */\nexport function add(a, b) {\n  return a + b;\n}\n\nfunction other() {\n}\n"
    assert [text[slice(*place)] for place in documented_functions(text, "javascript")] == [text[: text.index("}") + 1]]


def test_a_cut_run_leaves_no_corpus(packed: PackedCorpus, tmp_path: Path):
    with pytest.raises(BadInput, match="no documents"):
        pack([], tmp_path / "packed" / "train")
    with pytest.raises(BadInput, match="no packed corpus"):
        PackedCorpus(tmp_path, "train")
