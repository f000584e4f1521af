"""The bytes of each token of a tokenizer. Detokenizing by them neither adds nor drops a space."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property

from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from engine.common.errors import ModelError

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
METASPACE = "\u2581"
"""How SentencePiece writes a space."""


_MOST = 1 << 24
"""Most tokens; the largest vocabularies have a quarter of a million."""


def read_vocabulary(tokenizer: Tokenizer, rows: int, name: str) -> Vocabulary:
    """`rows`: of the model's embedding table, one a token.

    Raises ModelError, naming the model, for a token without a row, for more rows than any vocabulary has, and for a
    kind of tokenizer that is neither byte-level nor SentencePiece's with byte fallback.
    """
    if rows > _MOST:
        raise ModelError(
            f"The vocab_size of {name} is {rows:,}, and no vocabulary has more than {_MOST:,}: "
            "pull or copy the model again."
        )
    pieces = tokenizer.get_vocab(with_added_tokens=True)
    last = max(pieces.values(), default=0)
    if last >= rows:
        raise ModelError(
            f"The tokenizer of {name} has the token {last}, but its weights have {rows} tokens: "
            "pull or copy the model again."
        )
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    spell = _speller(pieces)
    spelled = [b""] * rows
    for piece, token in pieces.items():
        if piece not in special:
            spelled[token] = spell(piece)
    return Vocabulary(spelled)


class Vocabulary:
    """Bytes of ordinary tokens; control tokens have none."""

    def __init__(self, spelled: list[bytes]) -> None:
        self.bytes = spelled
        self.size = len(spelled)

    def text(self, ids: Sequence[int]) -> str:
        """Text of `ids`; bytes that are no UTF-8 become replacement characters."""
        return b"".join(self.bytes[token] for token in ids).decode(errors="replace")

    def is_text(self, ids: Sequence[int]) -> bool:
        """Whether their bytes are whole characters."""
        try:
            b"".join(self.bytes[token] for token in ids).decode()
        except UnicodeDecodeError:
            return False
        return True

    @cached_property
    def line_breaks(self) -> list[int]:
        return [token for token, spelled in enumerate(self.bytes) if b"\n" in spelled or b"\r" in spelled]

    @cached_property
    def empty(self) -> list[int]:
        """Tokens that stand for no text: control tokens and unused ids."""
        return [token for token, spelled in enumerate(self.bytes) if not spelled]

    def agreeing(self, head: bytes) -> list[int]:
        """Tokens that begin with `head`, or that `head` begins with: what may follow where `head` must be spelled."""
        shorter = [token for size in range(1, len(head)) if (token := self.token(head[:size])) is not None]
        return self.beginning(head) + shorter

    def beginning(self, head: bytes) -> list[int]:
        """Tokens that begin with `head`."""
        order = self._order
        first = bisect_left(order, head, key=lambda token: self.bytes[token])
        last = bisect_left(order, True, lo=first, key=lambda token: not self.bytes[token].startswith(head))
        return order[first:last]

    def token(self, spelled: bytes) -> int | None:
        """The token with this spelling."""
        at = bisect_left(self._order, spelled, key=lambda token: self.bytes[token])
        if at < len(self._order) and self.bytes[self._order[at]] == spelled:
            return self._order[at]
        return None

    @cached_property
    def _order(self) -> list[int]:
        return sorted((token for token, spelled in enumerate(self.bytes) if spelled), key=lambda t: self.bytes[t])


def _speller(pieces: dict[str, int]) -> Callable[[str], bytes]:
    if "\u0120" in pieces or "\u010a" in pieces:
        letters = _byte_letters()

        def spell(piece: str) -> bytes:
            return bytes(letters[letter] for letter in piece if letter in letters)

        return spell
    if "<0x0A>" in pieces:
        return _spell_metaspace
    raise ModelError(
        "The model's tokenizer is neither byte-level nor SentencePiece with byte fallback: use another model."
    )


def _spell_metaspace(piece: str) -> bytes:
    byte = _BYTE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace(METASPACE, " ").encode()


def _byte_letters() -> dict[str, int]:
    """GPT-2's alphabet: printable bytes stand for themselves, the others for letters from 256 on, in order."""
    alphabet = set(ByteLevel.alphabet())
    letters = {chr(byte): byte for byte in range(256) if chr(byte) in alphabet}
    rest = sorted(alphabet - letters.keys())
    others = [byte for byte in range(256) if byte not in letters.values()]
    return letters | dict(zip(rest, others, strict=True))
