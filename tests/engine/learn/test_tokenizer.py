from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from engine.common.errors import ModelError
from engine.learn.tokenizer import SPECIAL_TOKENS, encode, load_tokenizer, save_tokenizer, train_tokenizer
from engine.models.prompts.layout import MASK, PAD
from tests.engine.learn.packages import python_code, script_code

TOKENIZER = train_tokenizer([python_code("alpha"), script_code("beta"), "\n            deep()" * 50], 600)
HARD = "x = '<mask>' <pad>\r\n\t😋 é\u0301\n\n   y\x00\f \u00a0__init__   # ---------\r HTTPServer12345 " + " " * 50


def pieces(text: str) -> list[str]:
    return [TOKENIZER.decode([i]) for i in encode(TOKENIZER, text)]


@given(st.text())
def test_every_text_comes_back(text: str):
    assert TOKENIZER.decode(encode(TOKENIZER, text)) == text


def test_special_tokens_have_fixed_ids_and_are_never_read_from_text():
    assert [TOKENIZER.token_to_id(token) for token in SPECIAL_TOKENS] == list(range(16))
    assert (SPECIAL_TOKENS[PAD], SPECIAL_TOKENS[MASK]) == ("<pad>", "<mask>")
    assert min(encode(TOKENIZER, "".join(SPECIAL_TOKENS))) >= len(SPECIAL_TOKENS)
    assert TOKENIZER.decode([MASK, *encode(TOKENIZER, "a"), PAD]) == "a"


def test_an_indentation_is_one_token_with_its_line_break():
    assert pieces("return\n    return\n            deep") == ["return", "\n    ", "return", "\n            ", "deep"]


@pytest.mark.parametrize(
    ("text", "boundary"),
    [
        ("path.split", 5),
        ("os.environ", 2),
        ("found(path", 6),
        ("f_path", 1),
        ("12345", 3),
        ("x\n)", 2),
        ("useStrict", 3),
    ],
)
def test_no_token_crosses_a_likely_cursor(text: str, boundary: int):
    assert encode(TOKENIZER, text) == encode(TOKENIZER, text[:boundary]) + encode(TOKENIZER, text[boundary:])


def test_transformers_loads_the_folder_and_agrees(tmp_path: Path):
    save_tokenizer(TOKENIZER, tmp_path)
    theirs = AutoTokenizer.from_pretrained(str(tmp_path), local_files_only=True)
    ours = load_tokenizer(tmp_path)
    assert theirs(HARD, add_special_tokens=False).input_ids == encode(ours, HARD) == encode(TOKENIZER, HARD)
    assert (theirs.pad_token_id, theirs.mask_token_id) == (PAD, MASK)
    assert ours.decode(encode(ours, HARD)) == HARD


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path):
    with pytest.raises(ModelError, match=r"holds no tokenizer\.json"):
        load_tokenizer(tmp_path)
