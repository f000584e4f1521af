"""What a client says of itself counts as far as it can be read; the rest of it is as if it were not said."""

from __future__ import annotations

from typing import Any

import pytest

from dg_lsp.handlers.server import _folders
from dg_lsp.protocol.initialize import ClientHello, answer_to, result

MALFORMED = (True, 1, 1.5, "xinlineCompletionx", ["inlineCompletion"], None, {}, "")


@pytest.mark.parametrize("said", MALFORMED, ids=repr)
@pytest.mark.parametrize("name", ["textDocument", "general", "window", "workspace", "experimental"])
def test_malformed_capabilities_are_as_if_they_were_not_said(name: str, said: Any):
    params = {"capabilities": {name: said}}
    assert result(ClientHello(params)) == result(ClientHello({"capabilities": {}}))
    assert answer_to({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})


@pytest.mark.parametrize("flag", [True, 1, "1", {"any": "thing"}], ids=repr)
def test_a_flag_that_is_not_false_is_set(flag: Any):
    hello = ClientHello({"capabilities": {"textDocument": {"completion": {"dynamicRegistration": flag}}}})
    assert hello.can_register


@pytest.mark.parametrize(
    ("params", "folders"),
    [
        ({"workspaceFolders": [{"uri": "file:///a"}, 5], "rootUri": "file:///b"}, ["file:///a"]),
        ({"workspaceFolders": [{"name": "a"}], "rootUri": "file:///b"}, ["file:///b"]),
        ({"workspaceFolders": [None, {"uri": 5}], "rootUri": "file:///b"}, ["file:///b"]),
        ({"rootUri": 5, "rootPath": "/c"}, ["file:///c"]),
        ({"rootUri": None, "rootPath": 5}, []),
    ],
)
def test_the_folder_is_the_first_thing_that_names_one(params: Any, folders: list[str]):
    assert _folders(ClientHello(params)) == folders
