"""A broken text, and whether an edit makes it better."""

from __future__ import annotations

from dataclasses import dataclass

from engine.edits.damage import Health, damages_of, health
from engine.findings import Damage
from engine.syntax.budget import Budget
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

    @property
    def damages(self) -> tuple[Damage, ...]:
        """What is wrong, in order."""
        return damages_of(self.tree, self.state)

    def edited(self, start: int, end: int, new: str, budget: Budget) -> Patient | None:
        """With [start, end) replaced; None where that does not make it better, or can't be told in time.

        Better is: nothing is wrong any more; or fewer problems, and none where the text was replaced.
        """
        tree = self.tree.edited(start, end, new, budget)
        found = tree and health(tree, budget) if tree and _may_be_better(tree, self.tree) else None
        if tree is None or found is None:
            return None
        better = found.sound or self._is_better(found, tree, start, start + len(new))
        return Patient(tree=tree, state=found) if better else None

    def _is_better(self, found: Health, tree: SyntaxTree, start: int, end: int) -> bool:
        if len(found.found) > len(self.state.found):
            return False
        first, last = tree.byte(start), tree.byte(end)
        if any(each.start <= last and each.end >= first for each in found.found):
            return False
        before, after = self.state.complaint, found.complaint
        if after is not None and after.offset <= end:
            return False
        return len(found.found) < len(self.state.found) or before is not None


def _may_be_better(tree: SyntaxTree, before: SyntaxTree) -> bool:
    """A quick look, before every node is looked at."""
    return before.root.has_error or not tree.root.has_error


def patient(text: str, language: str, budget: Budget | None = None) -> Patient | None:
    """A text as it is; None for an unknown language or without time. `language`: `Grammar.name`."""
    budget = budget or Budget()
    tree = parsed(text, language, budget)
    state = tree and health(tree, budget)
    return Patient(tree=tree, state=state) if tree and state else None
