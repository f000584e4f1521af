from pathlib import Path

import numpy as np
import pytest

from engine.errors import BadInput
from engine.train.corpus import Document
from engine.train.packed import PackedCorpus, pack
from engine.train.tokenizer import BOS, EOS, decode, encode, train_tokenizer
from tests.engine.train.packages import python_code, script_code

DOCUMENTS = [
    Document(split="train", language="python", package="a", path="a.py", text=python_code("alpha", 5) + "# 😋\n"),
    Document(split="train", language="javascript", package="b", path="b.js", text=script_code("beta", 5)),
    Document(split="train", language="typescript", package="b", path="b.ts", text="let é = 1\n"),
]
TOKENIZER = train_tokenizer([d.text for d in DOCUMENTS], 400)


def test_each_document_is_found_again_as_text_and_as_tokens(tmp_path: Path):
    pack(DOCUMENTS, TOKENIZER, tmp_path)
    packed = PackedCorpus(tmp_path)
    assert len(packed) == 3
    for index, document in enumerate(DOCUMENTS):
        assert packed.text(index) == document.text
        assert packed.language(index) == document.language
        assert packed.ids(index).tolist() == [BOS, *encode(TOKENIZER, document.text), EOS]
    assert packed.tokens.tolist() == [i for index in range(3) for i in packed.ids(index).tolist()]


def test_tokens_are_aligned_with_the_text(tmp_path: Path):
    pack(DOCUMENTS, TOKENIZER, tmp_path)
    packed = PackedCorpus(tmp_path)
    for index in range(3):
        starts = packed.token_starts(index)
        assert starts[-1] == len(packed.utf8(index))
        half = len(starts) // 2
        tail = packed.utf8(index)[starts[half] :].decode(errors="replace")
        assert decode(TOKENIZER, packed.ids(index)[half:].tolist()) == tail
        assert np.all(np.diff(starts) >= 0)


def test_a_cut_run_leaves_no_corpus(tmp_path: Path):
    pack(DOCUMENTS, TOKENIZER, tmp_path)
    with pytest.raises(BadInput, match="no documents"):
        pack([], TOKENIZER, tmp_path)
    with pytest.raises(BadInput, match="no packed corpus"):
        PackedCorpus(tmp_path)
