"""Chat templates: turns messages into the tokens that a model was trained to answer.

The content of a message never becomes a control token: the template is rendered with stand-ins for the contents, which
are encoded as plain text. Rendering follows transformers' `apply_chat_template`: sandboxed Jinja, blocks trimmed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import Checkpoint, read_json_if_there, read_text

ChatMessage = Mapping[str, str]
"""`role` and `content`."""
_TAUGHT = re.compile(r"instruct|chat|(?<![a-z])it(?![a-z])", re.IGNORECASE)
"""Finds in a model's name that it was trained to answer messages: files of other models have a template, too."""
_STAND_IN = re.compile("\ue000([0-9]+)\ue001")


def chat_of(checkpoint: Checkpoint, tokenizer: Tokenizer) -> ChatTemplate | None:
    """The chat template of a checkpoint; None: it was not trained to answer messages."""
    source, names = _source(checkpoint)
    said = ("general.name", "general.basename", "general.finetune")
    title = " ".join([checkpoint.name, *(str(checkpoint.fields.get(field, "")) for field in said)])
    if not isinstance(source, str) or not _TAUGHT.search(title):
        return None
    return ChatTemplate(source, tokenizer, begin=names[0], end=names[1])


def _source(checkpoint: Checkpoint) -> tuple[Any, tuple[str, str]]:
    """The template, and the texts of the first and the last token."""
    if fields := checkpoint.fields:
        tokens = fields.get("tokenizer.ggml.tokens", ())
        ids = (fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos"))
        begin, end = (tokens[at] if isinstance(at, int) and 0 <= at < len(tokens) else "" for at in ids)
        return fields.get("tokenizer.chat_template"), (begin, end)
    said = read_json_if_there(checkpoint.path / "tokenizer_config.json", checkpoint.name)
    tokens = [said.get(name) or "" for name in ("bos_token", "eos_token")]
    begin, end = (str(token["content"]) if isinstance(token, dict) else str(token) for token in tokens)
    file = checkpoint.path / "chat_template.jinja"
    return read_text(file, checkpoint.name) if file.exists() else said.get("chat_template"), (begin, end)


class ChatTemplate:
    """The chat template of one model."""

    def __init__(self, source: str, tokenizer: Tokenizer, *, begin: str = "", end: str = "") -> None:
        """`begin`, `end`: the texts of the tokens that a template may name."""
        self._source = source
        self._tokenizer = tokenizer
        self._names = {"bos_token": begin, "eos_token": end}

    def ids(self, messages: Sequence[ChatMessage], opening: str = "") -> list[int]:
        """Tokens of messages and of `opening`, how the answer begins. Raises ModelError for a template that can't be
        rendered."""
        stand_ins = [{**each, "content": f"\ue000{at}\ue001"} for at, each in enumerate(messages)]
        parts = _STAND_IN.split(self._rendered(stand_ins))
        ids: list[int] = []
        for at, part in enumerate(parts):
            ids += self._plain(messages[int(part)]["content"]) if at % 2 else self._with_controls(part)
        return [*ids, *self._plain(opening)]

    def _rendered(self, messages: Sequence[ChatMessage]) -> str:
        from jinja2 import TemplateError

        try:
            return self._template.render(
                messages=messages, add_generation_prompt=True, enable_thinking=False, **self._names
            )
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            raise ModelError(f"The model's chat template can't be rendered ({error}): use another model.") from None

    @cached_property
    def _template(self) -> Any:
        # Only rewrites by instruction need it.
        from jinja2.exceptions import TemplateError
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def refuse(reason: str) -> None:
            raise TemplateError(reason)

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        names: dict[str, Any] = environment.globals
        names["raise_exception"] = refuse
        return environment.from_string(self._source)

    @cached_property
    def _controls(self) -> dict[str, int]:
        """Ids of the tokens that no merge makes, by their texts."""
        return {str(token.content): at for at, token in self._tokenizer.get_added_tokens_decoder().items()}

    @cached_property
    def _control(self) -> re.Pattern[str]:
        return re.compile(f"({'|'.join(map(re.escape, sorted(self._controls, key=len, reverse=True)))})")

    def _with_controls(self, text: str) -> list[int]:
        parts = self._control.split(text) if self._controls else [text]
        return [
            token
            for part in parts
            for token in ([self._controls[part]] if part in self._controls else self._plain(part))
        ]

    def _plain(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids if text else []
