"""The address of the HTTP server: HOST:PORT, as in settings and on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.common.errors import BadInput
from engine.common.server_address import is_loopback

PORT = 8012
"""The port where clients of llama.cpp's server look for infilling."""
_FORM = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^:\s]+)):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    host: str
    """A name, or an IP address without brackets."""
    port: int
    """0: any free port."""

    @property
    def local(self) -> bool:
        """Whether it is reachable only from this machine."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def http_address(text: str) -> HttpAddress:
    """Parse HOST:PORT. Raises BadInput."""
    found = _FORM.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65_535:
        raise BadInput(
            f"{text[:100]!r} is not an address for the HTTP server: write HOST:PORT, such as 127.0.0.1:{PORT}."
        )
    return HttpAddress(host=found["v6"] or found["host"], port=int(found["port"]))
