"""What a text offers to somebody at a place in it, without a model: for lists of actions."""

from __future__ import annotations

from engine.analysis.blanks import blank_at
from engine.analysis.damage import damages_of, health
from engine.core.findings import Findings
from engine.syntax.budget import Budget
from engine.syntax.tree import SyntaxTree

SURVEY_MS = 500.0
"""What takes longer is not found."""


def survey(tree: SyntaxTree, cursor: int, budget: Budget) -> Findings:
    """The damages of a text and what is to be filled in at `cursor`."""
    state = health(tree, budget)
    found = damages_of(tree, state, budget) if state else ()
    return Findings(damages=found, blank=blank_at(tree.text, cursor, tree.language))
