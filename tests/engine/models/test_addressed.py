"""Names of models that are addresses."""

import re
from pathlib import Path

import pytest

from engine.common.errors import ModelError
from engine.models.addressed import named, open_addressed

ROOT = Path(__file__).parents[3]
SERVER = "vllm+https://gpu.example:8000/team/coder?key_file=/home/me/key"


def test_an_oracle_is_a_file_of_this_machine():
    address = named("oracle:/home/me/cases.json")
    assert address.is_test
    assert (address.public_name, address.files()) == ("oracle", (Path("/home/me/cases.json"),))


def test_the_public_name_of_a_server_s_model_tells_nothing_of_this_machine():
    address = named(SERVER)
    assert not address.is_test
    assert address.public_name == "team/coder"
    assert "/home/me" not in address.about + address.device
    assert "is sent to https://gpu.example:8000" in address.device


@pytest.mark.parametrize("name", ["bundled", "auto", "/home/me/oracle:x", "google/some-model", "coder-1.5b:q8_0", ""])
def test_other_names_are_no_addresses(name: str):
    assert named(name).opened is None
    assert open_addressed(name) is None


def test_the_public_name_of_weights_tells_nothing_of_where_they_lie():
    assert named("bundled").public_name == "bundled"
    assert named("google/some-model").public_name == "google/some-model"
    assert named("/home/somebody/models/mine").public_name == "mine"


def test_an_address_that_is_unsafe_is_refused():
    with pytest.raises(ModelError, match="plain HTTP"):
        named("vllm+http://gpu.example/m")


def test_nothing_else_looks_at_the_prefixes():
    """The names themselves are of `common`, which dg_lsp knows; what they mean for a model is asked here alone."""
    allowed = {"engine/common/names.py", "engine/common/server_address.py", "engine/models/addressed.py"}
    looking = {
        file.relative_to(ROOT).as_posix()
        for side in ("engine", "dg_lsp")
        for file in (ROOT / side).rglob("*.py")
        if re.search(r"import .*\b(ORACLE|REMOTE)\b|startswith\(\(?[\"'](oracle|vllm)", file.read_text("utf-8"))
    }
    assert looking <= allowed
