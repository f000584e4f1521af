from pathlib import Path

import pytest

from engine.common.request import FillRequest
from engine.fill.loading import load

LINE = "    total = total + self.prices[name]  # ligne numéro {}\n"


@pytest.mark.parametrize("lines", [0, 1, 30, 200, 1_000])
def test_the_answer_is_opened_by_a_fence_however_long_the_file_is(released: Path, lines: int):
    model = load(str(released), "cpu").model
    prefix = "".join(LINE.format(number) for number in range(lines)) + "    return tot"
    prompt = model.prompt(FillRequest(prefix=prefix, suffix="\n", language="python"))
    _, _, answer = (model.vocabulary.text(prompt.context) + prompt.head).rpartition("\nmodel\n")
    fence, _, shown = answer.partition("\n")
    assert fence == "```python"
    assert prefix.endswith(shown)
    assert shown.endswith("    return tot")
    assert lines < 200 or len(shown) > 1_000
    assert len(prompt.context) < model.info.context_limit
