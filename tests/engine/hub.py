"""A Hub on the loopback interface that serves a directory as one model repository."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34


class Hub:
    """What is served, how it misbehaves, and what was asked for."""

    def __init__(self, folder: Path, hub_id: str) -> None:
        self.folder = folder
        self.hub_id = hub_id
        self.refusal: tuple[int, str] | None = None
        """Status and error code that every request for the repository meets."""
        self.broken: set[str] = set()
        """Files that answer with status 500."""
        self.cut_once: set[str] = set()
        """Files whose first download breaks off in the middle."""
        self.sends_parts = True
        """Whether a request for a part of a file is answered by that part."""
        self.downloads: Counter[str] = Counter()
        self.ranges: list[str] = []
        self.headers: dict[str, str] = {}
        """In the place of those that a file is sent with."""
        self.commit = COMMIT
        self.url = ""

    def files(self) -> list[Path]:
        return sorted(file for file in self.folder.rglob("*") if file.is_file())

    def name(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()

    def info(self) -> dict[str, object]:
        config = json.loads((self.folder / "config.json").read_text())
        return {
            "id": self.hub_id,
            "sha": self.commit,
            "config": {name: config[name] for name in ("model_type",) if name in config},
            "siblings": [{"rfilename": self.name(file), "size": file.stat().st_size} for file in self.files()],
        }

    def tree(self) -> list[dict[str, object]]:
        return [
            {
                "type": "file",
                "path": self.name(file),
                "size": file.stat().st_size,
                "oid": hashlib.sha1(file.name.encode()).hexdigest(),
            }
            for file in self.files()
        ]


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], **held: object) -> Generator[str]:
    """Its address while requests are answered by a handler that has what is `held`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), held))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serve_hub(folder: Path, hub_id: str) -> Generator[Hub]:
    hub = Hub(folder, hub_id)
    with serving(_Handler, hub=hub) as hub.url:
        yield hub


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def log_message(self, format: str, *args: object) -> None: ...

    def answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        api, resolve = f"/api/models/{self.hub.hub_id}", f"/{self.hub.hub_id}/resolve/"
        if self.hub.refusal:
            self.refuse(*self.hub.refusal)
        elif path.startswith(f"{api}/tree/"):
            self.send_json(self.hub.tree())
        elif path == api or path.startswith(f"{api}/revision/"):
            self.send_json(self.hub.info())
        elif (
            path.startswith(resolve)
            and (file := self.hub.folder / path.removeprefix(resolve).partition("/")[2]).is_file()
        ):
            self.send_file(file, body=body)
        else:
            self.refuse(404, "RepoNotFound")

    def refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_json(self, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def send_file(self, file: Path, *, body: bool) -> None:
        if body and file.name in self.hub.broken:
            return self.refuse(500, "")
        content = file.read_bytes()
        start, end = 0, len(content)
        asked = self.headers.get("Range", "") if self.hub.sends_parts else ""
        if asked:
            self.hub.ranges.append(f"{file.name} {asked}")
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(end, int(last or end) + 1)
        self.send_response(206 if asked else 200)
        kind = hashlib.sha256 if file.suffix == ".gguf" else hashlib.sha1  # as large files have it, and small ones
        about = {"X-Repo-Commit": self.hub.commit, "ETag": f'"{kind(content).hexdigest()}"'}
        for name, value in {**about, **self.hub.headers}.items():
            self.send_header(name, value)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.end_headers()
        if not body:
            return None
        self.hub.downloads[file.name] += 1
        if file.name in self.hub.cut_once and not asked.partition("-")[2]:
            self.hub.cut_once.remove(file.name)
            self.wfile.write(content[start : len(content) // 2])
            self.wfile.flush()
            self.connection.close()
            self.close_connection = True
        else:
            self.wfile.write(content[start:end])
        return None
