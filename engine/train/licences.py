"""Which licences the training text may stand under, and how a package's metadata says which one it is."""

from __future__ import annotations

import re
from email.message import Message
from importlib.metadata import PackageMetadata

_SPDX = re.compile(r"MIT(-0)?|ISC|0BSD|BSD-[234]-Clause|Apache-2\.0|PSF-2\.0|Python-2\.0(\.\d)?", re.IGNORECASE)
_NAMED = re.compile(
    r"\b(MIT|ISC|BSD|PSF|Python Software Foundation|ASL 2|Apache(-| )(Software )?(Licen[sc]e,? ?)?(Version )?2?)\b",
    re.IGNORECASE,
)
_OTHER_TERMS = re.compile(
    r"GPL|MPL|EPL|CDDL|CC-|CC0|Zlib|BSL|Mozilla|Eclipse|Affero|GNU|public domain|proprietary|commercial", re.IGNORECASE
)
_CLASSIFIER = re.compile(r"License :: (?:OSI|DFSG) [Aa]pproved(?: :: (?P<name>.+))?|License :: (?P<other>.+)")
_LONGEST_NAME = 100
"""Characters. A longer licence field holds the licence's text, which names many things."""


def is_permissive(expression: str) -> bool:
    """Whether an SPDX expression can be met with MIT, BSD, Apache-2.0, PSF or ISC terms alone."""
    parts = re.split(r"\s+(?:OR|AND)\s+", expression, flags=re.IGNORECASE)
    allowed = [bool(_SPDX.fullmatch(re.split(r"\s+WITH\s+", part.strip("() "))[0])) for part in parts]
    # An expression that mixes AND with OR would need its brackets read: every part has to be allowed there.
    either = re.search(r"\sOR\s", expression, re.IGNORECASE) and not re.search(r"\sAND\s", expression, re.IGNORECASE)
    return any(allowed) if either else all(allowed)


def permissive_licence(metadata: PackageMetadata | Message) -> str | None:
    """The permissive licence that a distribution's metadata states, or None.

    The expression counts before the classifiers, and these before the free text.
    """
    expression = metadata["License-Expression"]
    if expression:
        return expression if is_permissive(expression) else None
    text = (metadata["License"] or "").strip()
    text = text if len(text) <= _LONGEST_NAME else ""
    if _OTHER_TERMS.search(text):
        return None
    matches = [_CLASSIFIER.fullmatch(classifier) for classifier in metadata.get_all("Classifier") or []]
    names = [name for match in matches if match and (name := match["name"] or match["other"])]
    if names:
        return " / ".join(names) if all(map(_is_named_permissive, names)) else None
    return text if _is_named_permissive(text) else None


def _is_named_permissive(name: str) -> bool:
    return bool(is_permissive(name) or (_NAMED.search(name) and not _OTHER_TERMS.search(name)))
