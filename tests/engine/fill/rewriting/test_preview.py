"""Where a long selection changes is shown before all of it is checked, and the answer is the same as without that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from torch import Tensor

from engine.common.request import Draft, Filled, FillRequest
from engine.fill.answering import answering
from engine.fill.executor import drive
from engine.fill.rewriting.preview import likeliest_line
from tests.engine.talking import Talking

OLD = "\n".join(f"value_{at} = depth + {at}" for at in range(120))


class Anywhere(Talking):
    """It goes on from lines within its answer, too."""

    def _logits(self, written: Sequence[int]) -> Tensor:
        said = self.detokenize(written)
        at = 0 if self.says.startswith(said) else max(self.says.find(f"\n{said}") + 1, 0)
        return super()._logits([*self.tokenize(self.says[:at]), *written])


def rewritten(model: Talking, instruction: str) -> tuple[Filled, list[Draft]]:
    request = FillRequest(
        task="rewrite", prefix="width = 1\n", old=OLD, suffix="\n", language="python", instruction=instruction, n=1
    )
    drafts: list[Draft] = []
    return drive(model, answering(model, request), drafts.append), drafts


@pytest.mark.parametrize(
    ("instruction", "line"),
    [
        ("Add 1 to value_90.", 1),
        ("Change the width from 70 to 80.", 2),
        ("Say what `tidy` does.", 3),
        ("In tidy, take the value of another.", 4),
        ("Let the tidy of depth be 70.", 2),
        ("Make it faster.", None),
        ("", None),
    ],
)
def test_an_instruction_speaks_of_the_line_that_has_its_rarest_words(instruction: str, line: int | None) -> None:
    lines = ["to = from + into", "value_90 = to", "width = 70", "def tidy(to):", "    tidy(value)"]
    assert likeliest_line(lines, instruction) == line


@pytest.mark.parametrize("name", ["value_90", "value_3", "value_119"])
def test_a_change_is_shown_first_wherever_it_is(name: str) -> None:
    new = OLD.replace(f"{name} = depth", f"{name} = width")
    filled, drafts = rewritten(Anywhere(says=f"{new}\n```"), f"Use the width for {name}.")
    assert [each.text for each in filled.candidates] == [new]
    assert drafts[0].step <= 3
    assert drafts[0].settled == 0
    # It stays shown while what stands above it is checked.
    shown = next(at for at, draft in enumerate(drafts) if draft.text == new)
    assert all(draft.text == new for draft in drafts[shown:])


def test_a_preview_is_given_up_where_nothing_changes_there() -> None:
    new = OLD.replace("value_5 = depth", "value_5 = width")
    filled, drafts = rewritten(Anywhere(says=f"{new}\n```"), "Use the width for value_90.")
    assert [each.text for each in filled.candidates] == [new]
    assert "value_90 = width" not in "".join(draft.text for draft in drafts)


def test_what_the_model_says_from_the_beginning_counts() -> None:
    """Beside a preview that it does not keep to."""

    class Other(Anywhere):
        def _logits(self, written: Sequence[int]) -> Tensor:
            said = self.detokenize(written)
            if said.startswith("value_0") or not said:
                return super()._logits(written)
            return Anywhere(says=self.says.replace("value_90 = depth", "value_90 = width"))._logits(written)

    same_but_first = OLD.replace("value_0 = depth", "value_0 = value")
    filled, drafts = rewritten(Other(says=f"{same_but_first}\n```"), "Use the width for value_90.")
    assert any("value_90 = width" in draft.text for draft in drafts)
    assert [each.text for each in filled.candidates] == [same_but_first]


def test_a_short_selection_has_none() -> None:
    model = Anywhere(says="value = 2\n```")
    request = FillRequest(task="rewrite", prefix="", old="value = 1", suffix="\n", instruction="Let value be 2.", n=1)
    assert drive(model, answering(model, request)).candidates[0].text == "value = 2"
