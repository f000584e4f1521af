"""Addresses of servers, and how far each may be trusted."""

from __future__ import annotations

import pytest

from engine.common.errors import ModelError
from engine.common.server_address import server_address, server_of, with_options


def test_an_address_says_where_and_what():
    address = server_address("vllm+https://gpu.example:8000/google/diffusion?tokenizer=~/tok&key_file=/k&ca_file=/c")
    assert (address.url, address.model) == ("https://gpu.example:8000", "google/diffusion")
    assert (address.tokenizer, address.key_file, address.ca_file) == ("~/tok", "/k", "/c")
    assert address.name == "vllm+https://gpu.example:8000/google/diffusion"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("vllm+https://gpu:8000", "no address of a model"),
        ("vllm+ftp://gpu/m", "no address of a model"),
        ("vllm+https://gpu:x/m", "is no address"),
        ("vllm+https://me:key@gpu/m", "must hold no key"),
        ("vllm+https://gpu/m?tokeniser=x", "can't say 'tokeniser'"),
        ("vllm+https://gpu/m?key_file=key", "must be a whole path"),
        ("vllm+http://gpu:8000/m", "is plain HTTP: .* allow_insecure = true"),
        ("vllm+http://127.0.0.1.evil.example/m", "is plain HTTP"),
        ("vllm+http://10.0.0.5/m?allow_insecure=false", "is plain HTTP"),
        ("vllm+http://10.0.0.5/m?allow_insecure=1", "must be true or false"),
    ],
)
def test_what_can_not_or_should_not_be_used_is_refused(name: str, told: str):
    with pytest.raises(ModelError, match=told) as caught:
        server_address(name)
    assert "key@" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1:8", "localhost", "[::1]:80", "10.0.0.5"])
def test_plain_http_stays_on_the_machine_unless_it_is_allowed(host: str):
    more = "?allow_insecure=true" if host.startswith("10.") else ""
    assert server_address(f"vllm+http://{host}/m{more}").url == f"http://{host}"


def test_settings_become_part_of_the_address():
    name = with_options(
        "vllm+http://gpu/m?key_file=/mine", key_file="/k", tokenizer="a/b", ca_file="", allow_insecure=True
    )
    address = server_address(name)
    assert (address.key_file, address.tokenizer, address.allow_insecure) == ("/mine", "a/b", True)
    assert with_options("bundled", key_file="/k") == "bundled"


def test_it_is_said_where_text_goes():
    assert server_of("vllm+https://gpu:8000/m") == "https://gpu:8000"
    assert server_of("bundled") == ""
