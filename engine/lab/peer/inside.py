"""llama.cpp's process, run by the Python of its own environment: `python -I inside.py FILE THREADS CONTEXT`.

It answers each line of JSON with one; its first line says what answers. It imports nothing of ours, so that any Python
with the package `llama_cpp` can run it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from typing import IO, Any

SUFFIX_SHARE = 0.2
"""Largest share of the suffix in a context, as in our own prompts."""
_CHARACTERS = 16
"""Most characters of one token in code that is worth reading: text further away is not even tokenized."""
_BATCH = 512
_STRIDE, _ORDINARY = 1009, 50_000
"""Numbers for a context whose prefill is timed and whose tokens do not matter; the last tokens of a vocabulary are
markers."""


class PeerServer:
    """A resident coder with prompts of at most `context` tokens."""

    def __init__(self, path: str, threads: int, context: int) -> None:
        self._api: Any = importlib.import_module("llama_cpp")
        self._context = context
        self._model: Any = self._api.Llama(
            model_path=path,
            n_ctx=2 * context,
            n_batch=_BATCH,
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
        )
        self._vocab: Any = self._api.llama_model_get_vocab(self._model.model)
        self._markers = tuple(
            int(getattr(self._api, f"llama_vocab_fim_{name}")(self._vocab)) for name in ("pre", "suf", "mid")
        )

    def about(self) -> dict[str, Any]:
        system: bytes = self._api.llama_print_system_info()
        return {"version": self._api.__version__, "system": system.decode().strip()}

    def fill(
        self, prefix: str, suffix: str, order: str, max_tokens: int, first_line: bool, fresh: bool
    ) -> dict[str, Any]:
        """Fill greedily, up to a token that ends an answer; with `first_line`, at most to the end of the first line
        that is not blank."""
        began = time.perf_counter()
        if min(self._markers) < 0:
            raise ValueError("the file's vocabulary has no markers of fill-in-the-middle")
        return self._answer(self._prompt(prefix, suffix, order), max_tokens, began, first_line=first_line, fresh=fresh)

    def prefill(self, tokens: int) -> dict[str, Any]:
        """Read a context of so many tokens with an empty cache."""
        size = int(self._api.llama_vocab_n_tokens(self._vocab))
        ids = [_STRIDE * at % min(size, _ORDINARY) for at in range(tokens)]
        self._model.reset()
        began = time.perf_counter()
        self._model.eval(ids)
        return {"ms": _since(began)}

    def chat(self, messages: list[dict[str, str]], max_tokens: int) -> dict[str, Any]:
        """Answer greedily, by the template in the file."""
        began = time.perf_counter()
        said = self._model.create_chat_completion(messages=messages, max_tokens=max_tokens, temperature=0.0)
        return {
            "text": said["choices"][0]["message"]["content"] or "",
            "tokens": said["usage"]["completion_tokens"],
            "prompt_tokens": said["usage"]["prompt_tokens"],
            "ended": said["choices"][0]["finish_reason"] == "stop",
            "ms": _since(began),
        }

    def _prompt(self, prefix: str, suffix: str, order: str) -> list[int]:
        before, after, middle = self._markers
        room = int(self._context * SUFFIX_SHARE)
        following = self._tokens(suffix[: _CHARACTERS * room])[:room]
        room = self._context - len(following) - len(self._markers)
        standing = self._tokens(prefix[-_CHARACTERS * room :])[-room:]
        if order == "published":
            return [before, *standing, after, *following, middle]
        return [before, after, *following, middle, *standing]

    def _tokens(self, text: str) -> list[int]:
        return self._model.tokenize(text.encode(errors="replace"), add_bos=False, special=False)

    def _answer(
        self, prompt: list[int], max_tokens: int, began: float, *, first_line: bool, fresh: bool
    ) -> dict[str, Any]:
        if fresh:
            self._model.reset()
        written: list[int] = []
        text, ended = b"", False
        for token in self._model.generate(prompt, top_k=1, temp=0.0):
            if ended := bool(self._api.llama_vocab_is_eog(self._vocab, token)):
                break
            written.append(token)
            text = self._model.detokenize(written)
            if len(written) == max_tokens or (first_line and b"\n" in text.lstrip()):
                break
        said = text.decode(errors="replace")
        return {
            "text": _first_line(said) if first_line else said,
            "tokens": len(written),
            "prompt_tokens": len(prompt),
            "ended": ended,
            "ms": _since(began),
        }


def _first_line(text: str) -> str:
    """A text up to the end of its first line that is not blank, with the line break."""
    body = text.lstrip()
    end = body.find("\n")
    return text if end < 0 else text[: len(text) - len(body) + end + 1]


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)


def serve(told: IO[str], said: IO[str], path: str, threads: int, context: int) -> None:
    """Answer until the input ends."""

    def say(answer: dict[str, Any]) -> None:
        said.write(json.dumps(answer) + "\n")
        said.flush()

    try:
        peer = PeerServer(path, threads, context)
    except (ImportError, ValueError, OSError, RuntimeError) as error:
        return say({"error": str(error)})
    say(peer.about())
    does = {"fill": peer.fill, "prefill": peer.prefill, "chat": peer.chat}
    for line in told:
        request = json.loads(line)
        try:
            say(does[request.pop("do")](**request))
        except (ValueError, RuntimeError) as error:
            say({"error": str(error)})
    return None


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks decides when this ends
    # What a library prints must not stand between our lines.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        serve(sys.stdin, answers, sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
