"""The bundled model's own tokenizer: a byte-level BPE for code, with whole indentations as tokens, lossless for every
text.

A token never crosses the border of a piece. Pieces are: a line break with the indentation after it; a word of an
identifier with the space or underscores before it; up to three digits; a short run of punctuation. A member name does
not join its dot, nor an argument its bracket, as a cursor mostly stands there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from engine.common.errors import ModelError
from engine.models.prompts.layout import RESERVED

VOCABULARY_SIZE = 6144
_NAMED_SPECIALS = ("<pad>", "<eos>", "<bos>", "<mask>", "<suffix>", "<prefix>", "<snippet>")
SPECIAL_TOKENS = (*_NAMED_SPECIALS, *(f"<reserved{i}>" for i in range(RESERVED - len(_NAMED_SPECIALS))))

_PIECES = "|".join(
    (
        r"\r?\n[ \t]{0,32}",
        r" ?_{0,2}(?:\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?\p{Ll}+|\p{Lu}+|[\p{Lo}\p{Lm}\p{Lt}]+)",
        r" ?\p{N}{1,3}",
        r" ?(?:-{4,64}|={4,64}|#{4,64}|\*{4,64})",
        r" ?[^\s\p{L}\p{N}_]{1,4}",
        r" ?_{1,4}",
        r"[ \t]+(?=[\r\n]|$)",
        r"[ \t]+(?= \S)",
        r"[ \t]+",
        r"\s",
    )
)


def train_tokenizer(texts: Iterable[str], vocabulary_size: int = VOCABULARY_SIZE) -> Tokenizer:
    """Learn merges from `texts`. The first sixteen ids are the special tokens, the next 256 the bytes."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _blind_to_specials(tokenizer)


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`, as transformers' `AutoTokenizer` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "<eos>",
        "bos_token": "<bos>",
        "mask_token": "<mask>",
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in `folder`. Raises ModelError when there is none."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"{folder} holds no tokenizer.json; train one or name another folder.")
    return _blind_to_specials(Tokenizer.from_file(str(path)))


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of `text` without special tokens; "<mask>" in a text is six plain characters."""
    return tokenizer.encode(text, add_special_tokens=False).ids


def _blind_to_specials(tokenizer: Tokenizer) -> Tokenizer:
    # Not kept in tokenizer.json, so it is set again after each load.
    tokenizer.encode_special_tokens = True
    return tokenizer
