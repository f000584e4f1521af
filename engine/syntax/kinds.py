"""Node types of all grammars that mean the same to a fill; the names do not clash between languages."""

from __future__ import annotations


def _types(names: str) -> frozenset[str]:
    return frozenset(names.split())


ARGUMENTS = _types("argument_list arguments annotation_argument_list attribute_argument_list bracketed_argument_list")
"""Bracketed arguments of a call."""

BLOCKS = _types(
    """
    block statement_block compound_statement declaration_list field_declaration_list class_body constructor_body
    interface_body enum_body annotation_type_body module_body body_statement block_body match_block switch_body
    switch_block enum_declaration_list enum_member_declaration_list enum_variant_list enumerator_list
    keyframe_block_list heredoc_body object array table element fenced_code_block
    """
)
"""Bodies: with their braces where the language has some."""
