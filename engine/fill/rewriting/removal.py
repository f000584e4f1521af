"""Instructions that request removal, after which a selection may be empty."""

from __future__ import annotations

import re

_REMOVES = re.compile(
    r"(?:^|[,;.:]|\b(?:please|then|bitte)\b)\s*"
    r"(?:remove|delete|erase|drop|strip|get rid of|entfern(?:e|en)|lösch(?:e|en)|supprime[rz]?|enl[eè]ve[rz]?|eliminar?"
    r"|borrar?|quitar?|удали(?:ть)?)\b"
    r"|\band (?:remove|delete|erase|get rid of)\b|\b(?:entfernen|löschen)\W*$"
    r"|(?<!不要)(?<!别)(?:删除|删掉|移除|去掉|去除)|削除|消し|取り除",
    re.IGNORECASE,
)
_ALL = re.compile(
    r"\s*(please\s+)?(remove|delete|drop|erase|get rid of)\s+"
    r"(it|all|all of (it|this|them)|everything|this|these|them|(the|this) (selection|selected (code|text|lines?))"
    r"|(this|these|the selected) (code|text|lines?|block))(\s+please)?\s*[.!]?\s*",
    re.IGNORECASE,
)


def removes(instruction: str) -> bool:
    """Whether it requests removal, so that an empty answer is one: in English, German, French, Spanish, Russian,
    Chinese or Japanese."""
    return _REMOVES.search(instruction) is not None


def removes_all(instruction: str) -> bool:
    """Whether it requests removal of the whole selection, which needs no model."""
    return _ALL.fullmatch(instruction) is not None
