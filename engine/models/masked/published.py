"""Facts about published masked-diffusion coders that their config.json does not have.

Their Python code is never run; this table says how it differs from Qwen2 or Llama, each entry with its source. Token
ids are read from the tokenizer's files by the names given here.
"""

from __future__ import annotations

from engine.common.wire import Wire


class Published(Wire, frozen=True, kw_only=True):
    """A released checkpoint, or several that differ in their weights alone."""

    title: str
    model_type: str
    """The `model_type` in config.json."""
    mark: str = ""
    """A token that only this tokenizer has. Entries without one come after those with."""
    mask: str
    shifted: bool
    """Whether the logits at a position predict the next one, as in the left-to-right model that it was made from."""
    context: int
    """Tokens that it was trained to read, gap included."""
    end: str
    """Ends a text, and fills unused positions."""
    begin: str = ""
    """Stands before the prefix; empty: nothing does."""
    ends_suffix: bool = False
    """Whether `end` follows a suffix that reaches the end of the file."""
    expand: str = ""
    """The token that asks for two slots in place of its own. With it, `end` in a gap gives up its slot."""
    requests_first: bool = False
    """Whether a gap finds its width before it takes text; the published loop takes the surest token, whichever it
    is."""
    temperature: float
    top_p: float
    entropy_bound: float
    """Nats; 0 takes one token a step and those that are certain."""


_ONE_A_STEP = 0.0
_SEVERAL = 0.1
"""The authors accept as many tokens a step as the number of steps requires; the bound accepts those that hardly depend
on each other (arXiv:2505.24857, where 0.1 cost no accuracy on code)."""

PUBLISHED = (
    # Ids: <|mask|> 151666, <|expand|> 151667, <|beginoftext|> 151665, <|endoftext|> 151643.
    Published(
        title="DreamOn 7B",
        model_type="Dream",
        mark="<|expand|>",
        mask="<|mask|>",
        shifted=True,
        context=2048,
        begin="<|beginoftext|>",
        end="<|endoftext|>",
        ends_suffix=True,
        expand="<|expand|>",
        temperature=0.2,
        top_p=0.9,
        entropy_bound=_ONE_A_STEP,
        # Prompt, temperature, top-p, one token a step, 2048 tokens.
        # https://github.com/DreamLM/DreamOn/blob/main/readme.md
        # Shift by one; the end token deletes its slot and sweeps the masks to its right.
        # https://github.com/DreamLM/DreamOn/blob/main/eval/generator.py
        # The id of <|expand|>, padding with the end token.
        # https://github.com/DreamLM/DreamOn/blob/main/src/trainer/sft_expand_dataset.py
        # https://arxiv.org/abs/2602.01326
    ),
    # Ids: <|mask|> 151666, <|endoftext|> 151643, <|dlm_pad|> 151667.
    Published(
        title="DiffuCoder 7B",
        model_type="Dream",
        mark="<|dlm_pad|>",
        mask="<|mask|>",
        shifted=True,
        # Not stated; that of its sister models.
        context=2048,
        end="<|endoftext|>",
        temperature=0.3,
        top_p=0.95,
        entropy_bound=_SEVERAL,
        # Temperature and top-p.
        # https://github.com/apple/ml-diffucoder/blob/main/inference_demo.py
        # https://arxiv.org/abs/2506.20639
        # How a gap is laid out: nothing but prefix, masks and suffix.
        # https://github.com/NiuHechang/Calibrated_Adaptive_Length/blob/main/diffucoder_cal/diffucoder_cal.py
    ),
    # Ids: <|mask|> 151666, <|endoftext|> 151643.
    Published(
        title="Dream-Coder 7B",
        model_type="Dream",
        mask="<|mask|>",
        shifted=True,
        context=2048,
        end="<|endoftext|>",
        temperature=0.1,
        top_p=0.95,
        entropy_bound=_SEVERAL,
        # Temperature and top-p.
        # https://github.com/DreamLM/Dream-Coder/blob/main/README.md
        # https://arxiv.org/abs/2509.01142
        # Shift by one; how a gap is laid out.
        # https://github.com/NiuHechang/Calibrated_Adaptive_Length/blob/main/dreamcoder_cal/dreamcoder_cal.py
    ),
    # Ids: <|mdm_mask|> 126336, <|endoftext|> 126081.
    Published(
        title="LLaDA 8B",
        model_type="llada",
        mask="<|mdm_mask|>",
        shifted=False,
        context=4096,
        end="<|endoftext|>",
        # Published as 0: the likeliest token, ordered by its probability at temperature 1.
        temperature=1.0,
        top_p=1.0,
        entropy_bound=_SEVERAL,
        # https://github.com/ML-GSAI/LLaDA/blob/main/generate.py
        # https://arxiv.org/abs/2502.09992
        # https://github.com/NiuHechang/Calibrated_Adaptive_Length/blob/main/llada_cal/llada_cal.py
    ),
    # Ids: <M> 151665, <|endoftext|> 151643. Its config.json is Qwen2's; only the tokenizer tells.
    Published(
        title="Open-dCoder 0.5B",
        model_type="qwen2",
        mark="<M>",
        mask="<M>",
        shifted=True,
        context=2048,
        end="<|endoftext|>",
        temperature=0.6,
        top_p=0.95,
        entropy_bound=_SEVERAL,
        # Temperature, as in its published infilling runs.
        # https://github.com/pengzhangzhi/Open-dLLM/blob/main/eval/eval_infill/run_eval.sh
        # How a gap is laid out, top-p, 2048 tokens.
        # https://github.com/pengzhangzhi/Open-dLLM/blob/main/eval/eval_infill/eval_infill.py
    ),
)
