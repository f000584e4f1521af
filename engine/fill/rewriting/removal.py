"""Instructions that ask for removal, after which nothing may be left of a selection."""

from __future__ import annotations

import re

_REMOVES = re.compile(
    r"\b(remov|delet|eras|drop|strip|get(ting)? rid of|entfern|lösch|supprim|enlev|elimin|borr|quita|удал)"
    r"|删除|删掉|移除|去掉|去除|削除|消し",
    re.IGNORECASE,
)
_ALL = re.compile(
    r"\s*(please\s+)?(remove|delete|drop|erase|get rid of)\s+"
    r"(it|all|all of (it|this|them)|everything|this|these|them|(the|this) (selection|selected (code|text|lines?))"
    r"|(this|these|the selected) (code|text|lines?|block))(\s+please)?\s*[.!]?\s*",
    re.IGNORECASE,
)


def removes(instruction: str) -> bool:
    """Whether it asks for removal, so that an empty answer is one: in English, German, French, Spanish, Russian,
    Chinese or Japanese."""
    return _REMOVES.search(instruction) is not None


def removes_all(instruction: str) -> bool:
    """Whether it asks for removal of whatever is selected, and of nothing in particular: no model need be asked."""
    return _ALL.fullmatch(instruction) is not None
