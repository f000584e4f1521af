"""What ends a line, in texts as files and editors have them."""

from __future__ import annotations

import re

LINE_END = re.compile(r"\r\n?|\n")
"""The Language Server Protocol's three; other characters that `str.splitlines` heeds are text."""
