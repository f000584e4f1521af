"""The prompt of instruction-tuned checkpoints: a user turn that describes the gap, a model turn opened with the prefix.

The user turn holds what stays while somebody types (instruction, language, snippets, the text after the gap),
so the cache survives; the model turn opens a code fence and ends with the prefix. Terse prompts ("output only
...") made the released model answer nothing, so the turn describes instead of forbidding.
"""

from __future__ import annotations

from typing import Any

from tokenizers import Tokenizer

from engine.common.errors import ModelError
from engine.common.request import FillRequest
from engine.models.base import Prompt
from engine.models.checkpoints.directory import Files, read_text
from engine.models.prompts.text_window import CHARACTERS, cut_at_cursor
from engine.models.tokenizer import PromptLayout, within
from engine.models.vocabulary import Vocabulary

PINNED = 48
"""Suffix tokens on the canvas."""
_SUFFIX_SHARE, _SNIPPET_SHARE, _EDIT_SHARE = 0.2, 0.2, 0.1
_TASK = "Continue this file at the point where your answer begins, so that what follows fits."
_REWRITE = "Write a part of this file anew, so that it says the same in a better way and what follows fits."


class ChatPrompt(PromptLayout):
    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, limit: int, files: Files) -> None:
        super().__init__(tokenizer, vocabulary, limit)
        self._template = _template(tokenizer, files)

    def lay_out(self, request: FillRequest, limit: int | None = None) -> Prompt:
        """[user turn | model turn with the prefix] and [gap | near suffix]. `limit`: in place of our own."""
        limit = limit or self._limit
        room = int(limit * _SUFFIX_SHARE)
        following = self.after(request, room)[0][:room]
        fence = self.tokenize(f"```{request.language}\n")
        kept, head = cut_at_cursor(self.before(request, limit * 3 // 5 - len(fence)), self.vocabulary)
        return Prompt(
            context=(*self._turns(request, self.vocabulary.text(following), limit), *fence, *kept),
            suffix=tuple(following[:PINNED]),
            head=head,
        )

    def _turns(self, request: FillRequest, after: str, limit: int) -> list[int]:
        rewrites = request.task == "rewrite"
        parts = [request.instruction or (_REWRITE if rewrites else _TASK)]
        if request.language:
            parts.append(f"The language is {request.language}.")
        room = int(limit * _SNIPPET_SHARE) * CHARACTERS
        snippets = within(room, request.snippets, lambda snippet: len(snippet.text))
        parts += [f"{snippet.path}:\n```\n{snippet.text}\n```" for snippet in snippets]
        parts += self._edits(request, limit)
        if rewrites:
            old = request.old
            parts.append(f"Where your answer begins the file says now:\n```{request.language}\n{old}\n```")
        if after:
            parts.append(f"The file goes on with:\n```{request.language}\n{after}\n```")
        turn = [{"role": "user", "content": "\n\n".join(parts)}]
        # Thinking off: a template that knows no such switch ignores the name.
        return self._template.apply_chat_template(
            turn, tokenize=True, add_generation_prompt=True, enable_thinking=False, return_dict=False
        )

    def _edits(self, request: FillRequest, limit: int) -> list[str]:
        """The newest edits for which there is room, oldest first."""
        told = (
            "\n".join(
                (
                    f"Lately changed in {edit.path}:\n```diff",
                    *(
                        f"{sign}{line}"
                        for sign, text in (("-", edit.old), ("+", edit.new))
                        for line in text.splitlines()
                    ),
                    "```",
                )
            )
            for edit in reversed(request.edits)
        )
        return within(int(limit * _EDIT_SHARE) * CHARACTERS, told, len)[::-1]


def _template(tokenizer: Tokenizer, files: Files) -> Any:
    """A tokenizer of transformers, for its chat template alone, in which names of control tokens are control tokens."""
    # It takes seconds to import, and the bundled model has no use for it.
    from transformers import PreTrainedTokenizerFast

    twin = Tokenizer.from_str(tokenizer.to_str())
    said = files.small_file("tokenizer_config.json")
    tokens = {name: said[name] for name in ("bos_token", "eos_token", "pad_token", "unk_token") if said.get(name)}
    named = {name: token["content"] if isinstance(token, dict) else token for name, token in tokens.items()}
    file = files.path / "chat_template.jinja"
    template = read_text(file, files.name) if file.exists() else said.get("chat_template")
    found = PreTrainedTokenizerFast(tokenizer_object=twin, chat_template=template, **named)
    if len(found) > tokenizer.get_vocab_size():
        # It adds what it is told of, as tokens that the weights have no row for.
        raise ModelError(f"{files.name} has not all of the control tokens that it names: pull or copy the model again.")
    return found
