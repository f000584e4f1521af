"""What a text offers to somebody at a place in it, without a model: for lists of actions."""

from __future__ import annotations

from engine.analysis.blanks import blank_at
from engine.analysis.damage import damages
from engine.core.findings import Findings
from engine.syntax.budget import Budget
from engine.syntax.languages import language_of

SURVEY_MS = 500.0
"""What takes longer is not found."""


def survey(text: str, cursor: int, language: str) -> Findings:
    """The damages of a text and what is to be filled in at `cursor`. `language`: LSP identifier."""
    name = language_of(language)
    if name is None:
        return Findings(damages=())
    found = damages(text, name, Budget(SURVEY_MS)) or ()
    return Findings(damages=found, blank=blank_at(text, cursor, name))
