"""A coder of a few thousand random weights, in a file of the format that published ones have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
from tokenizers import pre_tokenizers

if TYPE_CHECKING:
    import torch

    from engine.common.request import FillRequest
    from engine.fill.executor import Filling
    from engine.models.causal.model import Causal
    from engine.models.causal.opening import Coder


MARKERS = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|file_sep|>")
REPOSITORY = (*MARKERS, "<|repo_name|>")
MERGES = ("r e", "t u", "re tu", "r n", "retu rn", "Ġ Ġ", "ĠĠ Ġ", "Ċ ĠĠĠ", ") Ċ", "Ġ =")


def open_model(path: Path) -> Causal:
    """The model in such a file, without passes that measure the machine."""
    # Other tests write such files without torch.
    from engine.models.causal.model import Causal

    return Causal.of_coder(open_coder(path), path.stem, path)


def rows_by_step(model: Causal, request: FillRequest) -> list[int]:
    """The rows of all passes between two steps of an answer, at each of which a newer request could stop it."""
    # Other tests write such files without torch.
    from engine.fill.answering import answering
    from engine.fill.executor import drive

    counts, run = [0], model.network.run

    def counted(ids: torch.Tensor, *more: Any) -> torch.Tensor:
        counts[-1] += ids.shape[1]
        return run(ids, *more)

    def stepwise(work: Filling) -> Filling:
        reply: Any = None
        while True:
            try:
                step = work.send(reply)
            except StopIteration as end:
                return end.value
            counts.append(0)
            reply = yield step

    model.network.run = counted
    drive(model, stepwise(answering(model, request)))
    return counts


def open_coder(path: Path, dtype: torch.dtype | None = None) -> Coder:
    """The coder in a GGUF, on the processor; in float32 unless told otherwise."""
    import torch

    from engine.models.causal.opening import coder_of
    from engine.models.checkpoints.checkpoint import read_checkpoint
    from engine.models.checkpoints.placement import Placement

    checkpoint = read_checkpoint(path, path.stem)
    layers = ("cpu",) * checkpoint.layers
    return coder_of(checkpoint, Placement(device="cpu", layers=layers, dtype=dtype or torch.float32))


def write_coder(
    path: Path,
    seed: int = 0,
    layers: int = 2,
    hidden: int = 32,
    tied: bool = True,
    markers: Sequence[str] = MARKERS,
    tokenizer: str = "qwen2",
    begin: str = "",
) -> Path:
    """A file of the class `qwen2`, with byte tokens, a few merges and markers; `begin`: the one that a text begins
    with. `tokenizer`: how it splits a text before merges, or "llama" for SentencePiece without merges."""
    rng = np.random.default_rng(seed)
    letters = ["▁", *(f"<0x{byte:02X}>" for byte in range(256))]
    if tokenizer != "llama":
        letters = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES)]
    tokens = [*letters, *markers]
    inner, heads, kv_heads = 2 * hidden, 4, 2
    width = hidden // heads * kv_heads
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_context_length(4096)
    writer.add_block_count(layers)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_token_list(tokens)
    if tokenizer == "llama":
        writer.add_tokenizer_model("llama")
        writer.add_token_scores([0.0] * len(tokens))
    else:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(tokenizer)
        writer.add_token_merges(MERGES)
    if begin:
        writer.add_bos_token_id(tokens.index(begin))
    kinds = dict.fromkeys(markers, gguf.TokenType.CONTROL)
    kinds |= {token: gguf.TokenType.BYTE for token in letters if token.startswith("<0x")}
    writer.add_token_types([kinds.get(token, gguf.TokenType.NORMAL) for token in tokens])

    def add(name: str, *shape: int, around: float = 0.0) -> None:
        scale = 0.02 if around else 1 / np.sqrt(shape[-1])
        writer.add_tensor(name, (around + rng.normal(0, scale, shape)).astype(np.float32))

    add("token_embd.weight", len(tokens), hidden)
    add("output_norm.weight", hidden, around=1)
    if not tied:
        add("output.weight", len(tokens), hidden)
    for layer in range(layers):
        for name, rows in (("attn_q", hidden), ("attn_k", width), ("attn_v", width)):
            add(f"blk.{layer}.{name}.weight", rows, hidden)
            add(f"blk.{layer}.{name}.bias", rows)
        add(f"blk.{layer}.attn_output.weight", hidden, hidden)
        add(f"blk.{layer}.ffn_gate.weight", inner, hidden)
        add(f"blk.{layer}.ffn_up.weight", inner, hidden)
        add(f"blk.{layer}.ffn_down.weight", hidden, inner)
        add(f"blk.{layer}.attn_norm.weight", hidden, around=1)
        add(f"blk.{layer}.ffn_norm.weight", hidden, around=1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_parts(whole: Path, parts: list[Path]) -> None:
    """The same model, its tensors dealt to several files."""
    read = gguf.GGUFReader(whole)
    for number, path in enumerate(parts):
        writer = gguf.GGUFWriter(path, "qwen2")
        writer.add_uint16("split.count", len(parts))
        for name, field in read.fields.items() if number == 0 else ():
            if not name.startswith(("GGUF.", "general.architecture")):
                kind = field.types[-1] if len(field.types) > 1 else None
                writer.add_key_value(name, field.contents(), field.types[0], sub_type=kind)
        for tensor in read.tensors[number :: len(parts)]:
            writer.add_tensor(tensor.name, tensor.data)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
