"""Addresses of models that a server runs: `vllm+https://HOST:PORT/MODEL?tokenizer=...`. Nothing is looked up here."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from engine.common.errors import ModelError

REMOTE = "vllm+"
"""Begins the name of a model that a server runs."""
_FORM = "write vllm+https://HOST:PORT/MODEL"
_OPTIONS = ("tokenizer", "ca_file", "key_file", "allow_insecure")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a server is, which of its models is meant, and how far it is trusted."""

    url: str
    """Scheme, host and port: "https://gpu.example:8000"."""
    model: str
    """As the server names it."""
    tokenizer: str = ""
    """A directory or Hub id with the model's tokenizer and config.json; empty: the Hub id that the server names."""
    ca_file: str = ""
    """Certificates of authorities to trust, PEM; empty: those of the system."""
    key_file: str = ""
    """Holds the server's API key; empty: only DG_LSP_SERVER_KEY may hold one."""
    allow_insecure: bool = False
    """Whether plain HTTP may leave this machine."""

    @property
    def name(self) -> str:
        """The model's name, without what is this machine's business alone."""
        return f"{REMOTE}{self.url}/{quote(self.model)}"


def server_address(name: str) -> ServerAddress:
    """What a name that begins with REMOTE says. Raises ModelError for one that can't be used, or should not be."""
    try:
        parts = urlsplit(name.removeprefix(REMOTE))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ModelError(f"{_shown(name)} is no address: {_FORM}.") from None
    if parts.username is not None or parts.password is not None:
        raise ModelError("A server's address must hold no key: put it into DG_LSP_SERVER_KEY or a key_file.")
    model = unquote(parts.path.strip("/"))
    if parts.scheme not in ("http", "https") or not host or not model or parts.fragment:
        raise ModelError(f"{_shown(name)} is no address of a model on a server: {_FORM}.")
    options = _options(parts.query)
    shown_host = f"[{host}]" if ":" in host else host
    address = ServerAddress(
        url=f"{parts.scheme}://{shown_host}{'' if port is None else f':{port}'}",
        model=model,
        tokenizer=options.get("tokenizer", ""),
        ca_file=options.get("ca_file", ""),
        key_file=options.get("key_file", ""),
        allow_insecure=options.get("allow_insecure") == "true",
    )
    if parts.scheme == "http" and not address.allow_insecure and not is_loopback(host):
        raise ModelError(
            f"{address.url} is plain HTTP: whoever is on the way could read and change what you type. Use https, or "
            "set allow_insecure = true for a network that you trust."
        )
    return address


def with_options(name: str, **options: str | bool) -> str:
    """The name of a server's model, with options added that it does not hold itself; those that are empty are not.
    Another model's name stays as it is."""
    if not name.startswith(REMOTE):
        return name
    base, _, query = name.partition("?")
    held = dict(parse_qsl(query, keep_blank_values=True))
    more = {key: "true" if value is True else str(value) for key, value in options.items() if value}
    wanted = more | held
    return f"{base}?{urlencode(wanted, safe='/~:')}" if wanted else base


def server_of(model: str) -> str:
    """Scheme, host and port of the server that runs a model; empty where this machine does."""
    return server_address(model).url if model.startswith(REMOTE) else ""


def _options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    for key, value in options.items():
        if key not in _OPTIONS:
            raise ModelError(f"The address of a server can't say {key[:40]!r}: use {', '.join(_OPTIONS)}.")
        if key == "allow_insecure" and value not in ("true", "false"):
            raise ModelError(f"{key} must be true or false, not {value[:40]!r}.")
        if key in ("ca_file", "key_file") and not (value.startswith("~") or Path(value).is_absolute()):
            # The engine stands in no folder of the user's.
            raise ModelError(f"{key} must be a whole path, not {value[:100]!r}.")
    return options


def is_loopback(host: str) -> bool:
    """Whether only this machine can be meant, told without looking anything up."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _shown(name: str) -> str:
    # Up to what could be a key.
    return repr(name.partition("?")[0].partition("@")[0][:100])
