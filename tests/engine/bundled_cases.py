"""The twenty hand-written gaps: `python -m tests.engine.bundled_cases [MODEL]` counts right answers."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from engine import load
from engine.common.marked import gap_at_markers
from engine.syntax.languages import language_of

FOLDER = Path(__file__).parents[1] / "cases" / "bundled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    language: str
    prefix: str
    suffix: str
    accepted: tuple[str, ...]

    def is_right(self, answer: str) -> bool:
        return answer.strip() in self.accepted


def read_cases() -> list[Case]:
    others: dict[str, list[str]] = json.loads((FOLDER / "accepted.json").read_text())
    files = sorted(path for path in FOLDER.iterdir() if path.name != "accepted.json")
    assert others.keys() <= {path.name for path in files}
    return [_case(path, others.get(path.name, [])) for path in files]


def _case(path: Path, others: list[str]) -> Case:
    gap = gap_at_markers(path.read_text())
    return Case(
        name=path.name,
        language=language_of(path=path.name) or "",
        prefix=gap.prefix,
        suffix=gap.suffix,
        accepted=(gap.old, *others),
    )


def main(model: str) -> None:
    infiller = load(model)
    right = 0
    for case in read_cases():
        candidates = infiller.fill(case.prefix, case.suffix, language=case.language).candidates
        answer = candidates[0].text if candidates else ""
        right += case.is_right(answer)
        print(f"{'right' if case.is_right(answer) else 'wrong'}  {case.name}: {answer!r}, not {case.accepted[0]!r}")  # noqa: T201
    print(f"{right} of 20")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:] or ["bundled"])
