"""Ids that are positions: zero-based decimal without padding."""

from __future__ import annotations

MOST_DIGITS = 9


def parse_position(text: str) -> int:
    """Return the position written as ``text``; KeyError where it is not written as we write it."""
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS or str(int(text)) != text:
        raise KeyError(text)
    return int(text)
