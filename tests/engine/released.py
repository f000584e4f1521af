"""A tiny checkpoint in the released shape: sharded safetensors, experts, both kinds of layers, vision."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    DiffusionGemmaConfig,
    DiffusionGemmaForBlockDiffusion,
    DiffusionGemmaGenerationConfig,
    DiffusionGemmaTextConfig,
    Gemma4VisionConfig,
    PreTrainedTokenizerFast,
)
from transformers.models.diffusion_gemma.generation_diffusion_gemma import EntropyBoundSamplerConfig

SPECIALS = ["<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>", "<|image>", "<image|>", "<|image|>"]
MERGES = ["in", "re", "turn", "return", "\u0120\u0120", "\u0120=", "self", "\u010a\u0120"]
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn>{{ message['role'] }}\n{{ message['content'] | trim }}<turn|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|turn>model\n{% endif %}"
)


def write_checkpoint(path: Path, *, seed: int = 0, shard_size: str = "60KB", **sizes: Any) -> Path:
    """A random model of some 80,000 parameters in several files; `sizes` replace what its text_config says."""
    tokenizer = new_tokenizer()
    tokenizer.save_pretrained(path)
    model = new_model(len(tokenizer), seed, **sizes)
    model.save_pretrained(path, max_shard_size=shard_size)
    return path


def new_model(vocab_size: int, seed: int, **sizes: Any) -> DiffusionGemmaForBlockDiffusion:
    tiny: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 8,
        "global_head_dim": 16,
        "sliding_window": 16,
        "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
        "num_experts": 4,
        "top_k_experts": 2,
        "moe_intermediate_size": 16,
        "max_position_embeddings": 4096,
        "initializer_range": 0.2,
    }
    text = DiffusionGemmaTextConfig(vocab_size=vocab_size, **tiny | sizes)
    vision = Gemma4VisionConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=8,
        position_embedding_size=16,
    )
    ids = dict(zip(SPECIALS, range(len(SPECIALS)), strict=True))
    config = DiffusionGemmaConfig(
        text_config=text,
        vision_config=vision,
        canvas_length=32,
        boi_token_id=ids["<|image>"],
        eoi_token_id=ids["<image|>"],
        image_token_id=ids["<|image|>"],
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = DiffusionGemmaForBlockDiffusion(config)
    model.generation_config = DiffusionGemmaGenerationConfig(
        max_denoising_steps=8,
        t_min=0.4,
        t_max=0.8,
        stability_threshold=1,
        confidence_threshold=0.005,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=0.1),
        bos_token_id=ids["<bos>"],
        eos_token_id=[ids["<eos>"], ids["<turn|>"]],
        pad_token_id=ids["<pad>"],
    )
    return model.eval()


def new_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level, so that any text survives it, with a few merges."""
    tokens = [*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges: list[tuple[str, str]] = []
    for word in MERGES:
        pieces = list(word)
        while len(pieces) > 1:
            merges.append((pieces[0], pieces[1]))
            pieces[:2] = [pieces[0] + pieces[1]]
            tokens.append(pieces[0])
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=list(dict.fromkeys(merges)), unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIALS)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        bos_token="<bos>",
        unk_token="<unk>",
        chat_template=CHAT_TEMPLATE,
    )
