"""A package index and a Hub on the loopback interface, for one file that both carry."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from tests.engine.hub import serving


class Carriers:
    """What is served, how it misbehaves, and what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        """By their paths."""
        self.cut_once: set[str] = set()
        """Paths whose first answer breaks off in the middle."""
        self.login = ""
        """The Authorization header that is asked for; empty: none."""
        self.logins: list[str] = []
        """Authorization headers that were sent."""
        self.asked: list[str] = []
        """Paths, and from which byte."""
        self.url = ""

    def carry(self, package: str, part: bytes, *, html: bool = False) -> None:
        """A wheel with a part of the file, and the page that lists it."""
        name, _, version = package.partition("==")
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w") as archive:
            archive.writestr(f"{name}/data.bin", part)
            archive.writestr(f"{name}/__init__.py", "raise SystemExit")
        wheel = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        self.files[f"/files/{wheel}"] = held.getvalue()
        link = f"../../files/{wheel}"
        page = (
            f'<a href="{link}#sha256=0">{wheel}</a>'
            if html
            else json.dumps({"files": [{"filename": wheel, "url": link}]})
        )
        self.files[f"/simple/{name}/"] = page.encode()


@contextmanager
def serve_carriers() -> Generator[Carriers]:
    carriers = Carriers()
    with serving(_Handler, carriers=carriers) as carriers.url:
        yield carriers


class _Handler(BaseHTTPRequestHandler):
    carriers: Carriers
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self.carriers.logins += self.headers.get_all("Authorization", [])
        path = urlsplit(self.path).path
        content = self.carriers.files.get(path)
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        self.carriers.asked.append(f"{path} {start}")
        if self.carriers.login and self.headers.get("Authorization") != self.carriers.login:
            return self.refuse(401)
        if content is None:
            return self.refuse(404)
        if start >= len(content) > 0:
            return self.refuse(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", "application/json" if content.startswith(b"{") else "text/html")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if path in self.carriers.cut_once:
            self.carriers.cut_once.remove(path)
            self.wfile.write(content[start : len(content) // 2])
            self.wfile.flush()
            self.close_connection = True
            return None
        self.wfile.write(content[start:])
        return None

    def refuse(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
