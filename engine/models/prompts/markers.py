"""The fill-in-the-middle markers of each family of coders, for our own prompts and for those that clients of the HTTP
server write.

Sources: the cards and tokenizers of Qwen2.5-Coder, StarCoder2, Granite Code, DeepSeek-Coder, CodeLlama, Codestral.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.common.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The markers of one family by their texts; the parts of a prompt may come in any order."""

    title: str
    prefix: str
    suffix: str
    middle: str = ""
    """The marker after which the gap is written; empty: this family has none, and the prefix comes last."""
    spaced: bool = False
    """Whether one space separates its markers from the text."""
    pad: str = ""
    files: tuple[str, ...] = ()
    """Markers before a file's path, in a prompt with several files."""
    repository: tuple[str, ...] = ()
    """What a repository's name stands after, before its files."""
    repository_end: str = ""
    """What follows that name."""
    ends: tuple[str, ...] = ()
    """Markers by which the model ends an answer, beside the end of text that its files name."""
    begins: bool = False
    """Whether its prompts begin with the token for the beginning of a text."""


QWEN = Dialect(
    title="Qwen",
    prefix="<|fim_prefix|>",
    suffix="<|fim_suffix|>",
    middle="<|fim_middle|>",
    pad="<|fim_pad|>",
    files=("<|file_sep|>", "<|file_separator|>"),
    repository=("<|repo_name|>",),
    repository_end="\n",
    ends=("<|endoftext|>", "<|im_end|>"),
)
DIALECTS = (
    QWEN,
    Dialect(
        title="StarCoder, Granite",
        prefix="<fim_prefix>",
        suffix="<fim_suffix>",
        middle="<fim_middle>",
        pad="<fim_pad>",
        files=("<file_sep>", "<filename>"),
        repository=("<repo_name>", "<reponame>"),
        ends=("<|endoftext|>",),
    ),
    Dialect(
        title="DeepSeek",
        prefix="<｜fim▁begin｜>",
        suffix="<｜fim▁hole｜>",
        middle="<｜fim▁end｜>",
        ends=("<｜end▁of▁sentence｜>", "<|EOT|>"),
        begins=True,
    ),
    Dialect(
        title="GLM",
        prefix="<|code_prefix|>",
        suffix="<|code_suffix|>",
        middle="<|code_middle|>",
        ends=("<|endoftext|>",),
    ),
    Dialect(
        title="CodeLlama",
        prefix="<PRE>",
        suffix="<SUF>",
        middle="<MID>",
        spaced=True,
        ends=("<EOT>", "</s>"),
        begins=True,
    ),
    Dialect(title="Codestral", prefix="[PREFIX]", suffix="[SUFFIX]", ends=("</s>",), begins=True),
)
_METASPACE = "\u2581"


@dataclass(frozen=True, slots=True, kw_only=True)
class FimTokens:
    """Ids of the markers of a fill-in-the-middle prompt."""

    dialect: Dialect
    prefix: int
    suffix: int
    middle: int | None
    pad: int
    """Never part of an answer; where a family has no such token, one that ends it."""
    file_separator: int | None
    repository: int | None
    begin: int | None
    """The first token of a prompt; None: prompts have none."""
    ends: frozenset[int]
    """Tokens that end an answer where the model writes one of them."""


def fim_tokens(
    vocabulary: Mapping[str, int], name: str, *, end: int | None = None, begin: int | None = None
) -> FimTokens:
    """Find the markers in a vocabulary. `end`, `begin`: the ids of a text's end and beginning that the files name.

    Raises ModelError for a vocabulary without the markers of any family.
    """
    dialect, prefix, suffix, middle = _dialect(vocabulary, name)
    separator, repository = _first(vocabulary, dialect.files), _first(vocabulary, dialect.repository)
    pad = _first(vocabulary, (dialect.pad,))
    named = (end, *(_first(vocabulary, (text,)) for text in dialect.ends))
    ends = {each for each in (*named, prefix, suffix, middle, pad, separator, repository) if each is not None}
    return FimTokens(
        dialect=dialect,
        prefix=prefix,
        suffix=suffix,
        middle=middle,
        pad=next(each for each in (pad, *named, prefix) if each is not None),
        file_separator=separator,
        repository=repository,
        begin=begin if dialect.begins else None,
        ends=frozenset(ends),
    )


def _dialect(vocabulary: Mapping[str, int], name: str) -> tuple[Dialect, int, int, int | None]:
    for dialect in DIALECTS:
        marks = [_first(vocabulary, (text,)) for text in (dialect.prefix, dialect.suffix, dialect.middle)]
        prefix, suffix, middle = marks
        if prefix is not None and suffix is not None and (middle is not None or not dialect.middle):
            return dialect, prefix, suffix, middle
    raise ModelError(
        f"{name} has no markers of fill-in-the-middle in its vocabulary: it was not trained to fill gaps, and would "
        "write on from the cursor without a look at what follows. Use a coder that was, such as coder-1.5b."
    )


def _first(vocabulary: Mapping[str, int], names: tuple[str, ...]) -> int | None:
    """The id of the first name in a vocabulary; SentencePiece writes a space before some."""
    spelled = (each for name in names if name for each in (name, _METASPACE + name))
    return next((vocabulary[each] for each in spelled if each in vocabulary), None)
