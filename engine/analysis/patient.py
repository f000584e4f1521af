"""A broken text, and whether an edit makes it better."""

from __future__ import annotations

from dataclasses import dataclass

from engine.analysis.damage import Health, damages_of, health, structural_complaint
from engine.core.findings import Damage
from engine.syntax.budget import Budget
from engine.syntax.problems import Found, find
from engine.syntax.tree import SyntaxTree, parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """A text with its tree and state; it never changes."""

    tree: SyntaxTree
    state: Health

    @property
    def text(self) -> str:
        """All of it."""
        return self.tree.text

    def damages(self, budget: Budget) -> tuple[Damage, ...]:
        """What is wrong, in order; as much of it as there is time for."""
        return damages_of(self.tree, self.state, budget)

    @property
    def severity(self) -> tuple[int, int]:
        """How bad it is: problems, and how much text from the compiler's complaint on has not been judged."""
        complaint = self.state.complaint
        return len(self.state.found), len(self.text) - complaint.offset + 1 if complaint else 0

    def edited(self, start: int, end: int, new: str, budget: Budget) -> Patient | None:
        """With [start, end) replaced; None where that does not make it better, or can't be told in time.

        Better is: nothing is wrong any more; or fewer problems, and none where the text was replaced.
        """
        tree = self.tree.edited(start, end, new, budget)
        found = find(tree.root, budget) if tree else None
        if tree is None or found is None or not self._may_be_better(tree, found, start, start + len(new)):
            return None
        # Compiling costs most, so it comes last.
        better = Patient(tree=tree, state=Health(found=tuple(found), complaint=structural_complaint(tree)))
        return better if better.state.sound or better._is_better_than(self, start + len(new)) else None

    def _may_be_better(self, tree: SyntaxTree, found: list[Found], start: int, end: int) -> bool:
        first, last = tree.byte(start), tree.byte(end)
        if any(each.start <= last and each.end >= first for each in found):
            return False
        before = len(self.state.found)
        return len(found) < before or (len(found) == before and self.state.complaint is not None)

    def _is_better_than(self, other: Patient, end: int) -> bool:
        """Whether less is wrong, and what the compiler complains about now, if anything, comes behind `end`."""
        complaint = self.state.complaint
        return self.severity < other.severity and (complaint is None or complaint.offset > end)


def patient(text: str, language: str, budget: Budget | None = None) -> Patient | None:
    """A text as it is; None for an unknown language or without time. `language`: `Grammar.name`."""
    budget = budget or Budget()
    tree = parsed(text, language, budget)
    return tree and patient_of(tree, budget)


def patient_of(tree: SyntaxTree, budget: Budget) -> Patient | None:
    """A parsed text as it is; None without time."""
    state = health(tree, budget)
    return state and Patient(tree=tree, state=state)
