"""Tokenizers out of GGUF fields, against the published way to cut a text of each kind."""

import json
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, pre_tokenizers, trainers
from tokenizers.models import BPE

from engine.common.errors import ModelError
from engine.models.causal.tokenizer import _from_fields
from engine.models.tokenizer import settled

TEXTS = [
    "def add(a, b):\n    return a + b  # 12345 it's\n\n\nclass Füße:\n\tx = 'don't'  \r\n",
    "for (int i = 0; i < 1000000; ++i) { sum += i*3.14159; }\n// 中文字符 и кириллица 😋😋\n",
    "   leading\n\n  \t mixed   \n!!! ??? ==== ->  =>\n x1y22z333 I'LL we've",
    "",
    " ",
    "\n",
    "<fim_prefix> is text here, and <|endoftext|>",
]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
WORDS = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def split(*patterns: str) -> list[Any]:
    return [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in patterns]


PUBLISHED = {
    "gpt-2": [WORDS],
    "starcoder": [pre_tokenizers.Digits(individual_digits=True), WORDS],
    "refact": [pre_tokenizers.Digits(individual_digits=True), WORDS],
    "deepseek-coder": [
        *split(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+"),
        pre_tokenizers.Digits(individual_digits=True),
        BYTES,
    ],
    "llama-bpe": [*split(LLAMA3), BYTES],
    "qwen2": [*split(LLAMA3.replace("{1,3}", "")), BYTES],
}
"""What the published tokenizer.json of each cuts a text by, before it merges bytes."""


def published(kind: str) -> Tokenizer:
    """One that was trained on a few texts."""
    tokenizer = Tokenizer(BPE(ignore_merges=kind == "llama-bpe"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(PUBLISHED[kind])
    trainer = trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True), AddedToken("<fim_prefix>", special=True)])
    return settled(tokenizer)


def fields_of(tokenizer: Tokenizer, kind: str) -> dict[str, Any]:
    """What a GGUF says of it."""
    ordered = sorted(tokenizer.get_vocab(with_added_tokens=True).items(), key=lambda entry: entry[1])
    special = {each.content for each in tokenizer.get_added_tokens_decoder().values()}

    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": kind,
        "tokenizer.ggml.tokens": [token for token, _ in ordered],
        "tokenizer.ggml.token_type": [3 if token in special else 1 for token, _ in ordered],
        "tokenizer.ggml.merges": [" ".join(each) if isinstance(each, list) else each for each in merges],
    }


@pytest.mark.parametrize("kind", PUBLISHED)
def test_texts_are_cut_as_the_published_tokenizer_cuts_them(kind: str):
    theirs = published(kind)
    ours = settled(_from_fields(fields_of(theirs, kind), "coder"))
    for text in TEXTS:
        wanted = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, add_special_tokens=False).ids == wanted
        assert ours.decode(wanted, skip_special_tokens=False) == text


def sentence_piece(**scored: float) -> Tokenizer:
    """One with the bytes, and pieces with their scores."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *scored]
    kinds = [2, 3, 3, *[6] * 256, *[1] * len(scored)]
    scores = [0.0] * 259 + list(scored.values())
    named = {"model": "llama", "tokens": tokens, "token_type": kinds, "scores": scores}
    return settled(_from_fields({f"tokenizer.ggml.{name}": value for name, value in named.items()}, "coder"))


def test_sentence_piece_puts_the_best_pair_together_first():
    scored = {"a": -10.0, "b": -11.0, "c": -12.0, "▁": -9.0, "ab": -2.0, "bc": -1.0, "▁a": -3.0, "abc": -8.0}
    tokenizer = sentence_piece(**scored)
    for text, pieces in {
        "abc": ["abc"],
        "ab": ["ab"],
        "bcc": ["bc", "c"],
        "abbc": ["ab", "bc"],
        " ab": ["▁", "ab"],  # "ab" is likelier than " a"
        " a": ["▁a"],
    }.items():
        encoded = tokenizer.encode(text, add_special_tokens=False)
        assert encoded.tokens == pieces
        assert tokenizer.decode(encoded.ids, skip_special_tokens=False) == text


@pytest.mark.parametrize("text", ["x", " x", "  x ", "\n\ta", "é", "😋", "<s> a", "a</s>"])
def test_sentence_piece_says_what_no_piece_has_in_bytes_and_adds_no_space(text: str):
    tokenizer = sentence_piece(**{"a": -1.0, "▁": -2.0})
    encoded = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(encoded.ids, skip_special_tokens=False) == text
    assert not {0, 1, 2} & set(encoded.ids)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"tokenizer.ggml.pre": "martian"}, "a tokenizer of the kind 'martian', and dg-lsp knows qwen2, gpt-2"),
        ({"tokenizer.ggml.model": "t5"}, "of the model 't5', which dg-lsp can't build"),
        ({"tokenizer.ggml.merges": None}, "does not say its tokenizer's merges"),
        ({"tokenizer.ggml.token_type": [1]}, "says of 1 what they are"),
    ],
)
def test_what_can_not_be_built_is_refused_by_a_sentence(changed: dict[str, Any], why: str):
    with pytest.raises(ModelError, match=why):
        _from_fields(fields_of(published("gpt-2"), "gpt-2") | changed, "coder")
