"""JSON files too large for memory: the objects in the arrays at their top level, one at a time."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from io import BufferedReader
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import LONE_SURROGATE, has_lone_surrogate
from wordnet_splits.base.untrusted import GiB, MiB, open_untrusted

LARGEST: Final = 64 * GiB
LARGEST_ITEM: Final = 16 * MiB
"""Largest number of characters in an object; COCO's largest, a crowd's outline, has some 100,000."""
PIECE: Final = 1 * MiB

_NUMBER = "0123456789.eE+-"


def json_items(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (key, object) for every object in the arrays at the top level of a JSON file.

    Other values are ignored. One object is in memory at a time, whatever the file's size.

    Raises SourceError if the file is absent, unreadable or not of that form, has a key twice at the top
    level, or does not end after the object.
    """
    with open_untrusted(path, largest=LARGEST, error=SourceError) as file:
        text = _Text(file, path)
        keys = set()
        for _ in _separated(text, "{", "}"):
            key = str(text.value())
            if key in keys:
                raise text.wrong(f"the key {printable(key)} occurs twice")
            keys.add(key)
            text.expect(":")
            if text.peek() == "[":
                for _ in _separated(text, "[", "]"):
                    if isinstance(item := text.value(), dict):
                        yield key, item
            else:
                text.value()
        text.end()


def _separated(text: _Text, opening: str, closing: str) -> Iterator[None]:
    """Stop before each of the comma-separated values between two brackets."""
    text.expect(opening)
    if text.peek() != closing:
        yield
        while text.peek() != closing:
            text.expect(",")
            yield
    text.expect(closing)


class _Text:
    """A text that is read piece by piece."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        self._file, self._path = file, path
        self._bytes = codecs.getincrementaldecoder("utf-8-sig")()
        self._decoder = JSONDecoder()
        self._text, self._at, self._before = "", 0, 0
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is not white space; SourceError at the end."""
        if not (character := self._next()):
            raise self.wrong("it ends too early")
        return character

    def _next(self) -> str:
        """Return the next character that is not white space, "" at the end."""
        while True:
            while self._at < len(self._text):
                if (character := self._text[self._at]) not in " \t\r\n":
                    return character
                self._at += 1
            if not self._more():
                return ""

    def expect(self, character: str) -> None:
        """Skip the next character, which must be this one."""
        if self.peek() != character:
            raise self.wrong(f"{character!r} expected")
        self._at += 1

    def end(self) -> None:
        """Refuse further text."""
        if self._next():
            raise self.wrong("something follows the object")

    def value(self) -> Any:
        """Return the next value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                # a number may go on: 1 as 12, 1. as 1.5
                if self._text[end : end + 1] not in _NUMBER or not self._more():
                    if has_lone_surrogate(self._text, value, self._at, end):
                        raise self.wrong(LONE_SURROGATE)
                    self._at = end
                    return value
            except JSONDecodeError as cause:
                if len(self._text) - self._at > LARGEST_ITEM or not self._more():
                    raise self.wrong(cause.msg) from None
            except (ValueError, RecursionError) as cause:
                raise self.wrong(str(cause)) from None

    def _more(self) -> bool:
        """Read as much again as is not parsed yet, so that a long value is tried few times."""
        if self._ended:
            return False
        data = self._file.read(max(PIECE, len(self._text) - self._at))
        self._ended = not data
        try:
            decoded = self._bytes.decode(data, final=self._ended)
        except UnicodeDecodeError:
            raise SourceError("is not UTF-8 text", where=str(self._path)) from None
        self._before += self._at
        self._text, self._at = self._text[self._at :] + decoded, 0
        return True

    def wrong(self, problem: str) -> SourceError:
        """Build the error for a problem at this character."""
        return SourceError(
            f"is not JSON of an object of arrays: {problem} at character {self._before + self._at:,}",
            where=str(self._path),
        )
