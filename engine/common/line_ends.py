"""Line ends in files and editors."""

from __future__ import annotations

import re

LINE_END = re.compile(r"\r\n?|\n")
"""The three of the Language Server Protocol; other separators of `str.splitlines` are text."""
