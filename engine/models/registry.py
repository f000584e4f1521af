"""The list of families, and the family that runs a config.json or a GGUF."""

from __future__ import annotations

from engine.common.errors import ModelError
from engine.models import causal, gemma, masked
from engine.models.checkpoints.directory import Files
from engine.models.checkpoints.gguf import GgufFile
from engine.models.family import Family

FAMILIES = (gemma.FAMILY, masked.FAMILY, causal.FAMILY)


class UnknownFamily(ModelError):
    """A model of a type that no family runs."""


def family_of_type(model_type: object, name: str) -> Family:
    """The family that runs models of this type of config.json. Raises UnknownFamily for a type that none runs."""
    for family in FAMILIES:
        if model_type in family.model_types:
            return family
    runs = ", ".join(each for family in FAMILIES for each in family.model_types)
    raise UnknownFamily(f"{name} is a model of type {model_type!r}: dg-lsp runs {runs}.")


def family_of(files: Files) -> Family:
    """The family that runs a model directory. Raises UnknownFamily for a type that none runs."""
    model_type = files.config.get("model_type")
    own = (family for family in FAMILIES if model_type in family.model_types and family.runs(files))
    return next(own, None) or family_of_type(model_type, files.name)


def family_of_gguf(file: GgufFile, name: str) -> Family:
    """The family that runs a GGUF. Raises UnknownFamily for an architecture that none runs."""
    for family in FAMILIES:
        if file.architecture in family.architectures:
            return family
    runs = ", ".join(each for family in FAMILIES for each in family.architectures)
    raise UnknownFamily(f"{name} is of the architecture {file.architecture[:80]!r}: dg-lsp runs {runs}.")


def family_named(name: str) -> Family:
    """The family of that name, as `Checkpoint.family` holds it."""
    return next(family for family in FAMILIES if family.name == name)
