"""Fetches files out of Python packages from the index that pip is configured with. Nothing of a package is installed or
run.

Source: the simple repository API (PEP 503 as HTML, PEP 691 as JSON), pip's documentation of its settings.
"""

from __future__ import annotations

import configparser
import json
import os
import ssl
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, Request, build_opener

from engine.common.errors import EngineError

_DEFAULT = "https://pypi.org/simple/"
_ACCEPTED = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_SECTIONS = ("download", "install", "global")
_TIMEOUT_S = 30.0
_MOST_LISTING_NBYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """pip's settings."""

    indexes: tuple[str, ...]
    certificates: str = ""
    """A file with trusted certificates; empty: the system's."""


def index_settings(environment: Mapping[str, str] = os.environ, files: Sequence[Path] | None = None) -> IndexSettings:
    """pip's settings from the environment, else from pip.conf, else for PyPI."""
    configured = _configured(_config_files(environment) if files is None else files)

    def said(name: str) -> str:
        return environment.get(f"PIP_{name.upper().replace('-', '_')}") or configured.get(name, "")

    named = [*(said("index-url") or _DEFAULT).split(), *said("extra-index-url").split()]
    return IndexSettings(indexes=tuple(each.rstrip("/") + "/" for each in named), certificates=said("cert"))


def find_wheel(package: str, settings: IndexSettings) -> str:
    """The address of the wheel of NAME==VERSION. Raises EngineError where no index has it, or none can be reached."""
    name, _, version = package.partition("==")
    wanted = f"{name.replace('-', '_')}-{version}-".lower()
    why = "no index has it"
    for index in settings.indexes:
        try:
            with open_url(urljoin(index, f"{name}/"), settings, {"Accept": _ACCEPTED}) as answer:
                page, address = answer.read(_MOST_LISTING_NBYTES), answer.geturl()
                kind = answer.headers.get_content_type()
        except OSError as error:
            why = f"{urlsplit(index).hostname or index} says: {error}"
            continue
        for file, link in _links(page, kind):
            if file.lower().startswith(wanted) and file.endswith(".whl"):
                return _with_login(urljoin(address, link), index)
    raise EngineError(f"The package {package} can't be had ({why}): check the network, and pip's index-url.")


def open_url(url: str, settings: IndexSettings, headers: Mapping[str, str], login: str = "") -> Any:
    """Open an address to read from; a name and password in it, or the Authorization header `login`, are sent to that
    host alone. Raises OSError."""
    parts = urlsplit(url)
    request = Request(url, headers={"User-Agent": "dg-lsp", **headers})
    if parts.username is not None:
        host = parts.hostname or ""
        netloc = f"{host}:{parts.port}" if parts.port else host
        request = Request(urlunsplit(parts._replace(netloc=netloc)), headers=dict(request.header_items()))
        named = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        login = f"Basic {b64encode(named.encode()).decode()}"
    if login:
        request.add_unredirected_header("Authorization", login)
    context = ssl.create_default_context(cafile=settings.certificates or None)
    return build_opener(HTTPSHandler(context=context)).open(request, timeout=_TIMEOUT_S)


def _with_login(url: str, index: str) -> str:
    """An address with the name and password of the index on the same host."""
    parts, own = urlsplit(url), urlsplit(index)
    if own.username is None or (parts.hostname, parts.port) != (own.hostname, own.port):
        return url
    return urlunsplit(parts._replace(netloc=own.netloc))


def _config_files(environment: Mapping[str, str]) -> list[Path]:
    """pip's configuration files; later ones override earlier ones."""
    home = Path("~").expanduser()
    if sys.platform == "win32":
        places = [Path(environment.get("APPDATA", home)) / "pip" / "pip.ini", home / "pip" / "pip.ini"]
    else:
        own = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
        places = [
            Path("/etc/xdg/pip/pip.conf"),
            Path("/etc/pip.conf"),
            home / ".pip" / "pip.conf",
            own / "pip/pip.conf",
        ]
    named = environment.get("PIP_CONFIG_FILE")
    return [*places, Path(sys.prefix) / "pip.conf", *([Path(named)] if named else [])]


def _configured(files: Sequence[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        with suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read(file, encoding="utf-8")
        for section in reversed(_SECTIONS):
            found |= dict(parser.items(section)) if parser.has_section(section) else {}
    return found


def _links(page: bytes, kind: str) -> list[tuple[str, str]]:
    """Names and addresses of files on a page of the index."""
    if kind.endswith("json"):
        with suppress(ValueError, KeyError, TypeError):
            return [(each["filename"], each["url"]) for each in json.loads(page)["files"]]
        return []
    parser = _Anchors()
    parser.feed(page.decode(errors="replace"))
    return [(unquote(urlsplit(link).path.rpartition("/")[2]), urldefrag(link)[0]) for link in parser.links]


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]
