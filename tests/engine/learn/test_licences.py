from email.message import Message

import pytest

from engine.learn.sources import is_permissive, permissive_licence


def metadata(**fields: str | list[str]) -> Message:
    message = Message()
    for name, values in fields.items():
        for value in [values] if isinstance(values, str) else values:
            message[name.replace("_", "-")] = value
    return message


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("(MIT OR GPL-3.0-only)", True),
        ("MIT AND BSD-3-Clause", True),
        ("BSD-3-Clause AND Zlib", False),
        ("MIT AND (ISC OR GPL-3.0-only)", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MPL-2.0", False),
        ("BlueOak-1.0.0", False),
        ("", False),
    ],
)
def test_an_expression_has_to_be_met_by_permissive_terms_alone(expression: str, allowed: bool):
    assert is_permissive(expression) is allowed


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License_Expression": "ISC"}, "ISC"),
        ({"License_Expression": "MPL-2.0", "License": "MIT"}, None),
        ({"Classifier": ["License :: OSI Approved :: BSD License", "Topic :: Software"]}, "BSD License"),
        ({"Classifier": ["License :: OSI Approved", "License :: OSI Approved :: MIT License"]}, "MIT License"),
        (
            {"Classifier": ["License :: OSI Approved :: BSD License", "License :: OSI Approved :: GNU GPL"]},
            None,
        ),
        ({"License": "Apache 2.0"}, "Apache 2.0"),
        ({"License": "Apache License, Version 2.0"}, "Apache License, Version 2.0"),
        ({"License": "MPL-2.0 AND MIT"}, None),
        ({"License": "Permission is hereby granted (MIT) " + "x" * 200}, None),
        ({}, None),
    ],
)
def test_metadata_names_the_licence_by_expression_then_classifiers_then_text(fields, licence):
    assert permissive_licence(metadata(**fields)) == licence
