"""JSON files too large to be held whole: the objects in the arrays at their top, one at a time."""

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
"""Characters of one object; COCO's largest, a crowd's outline, has some 100,000."""
PIECE: Final = 1 * MiB

_NUMBER = "0123456789.eE+-"


def json_items(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (key, object) for every object in an array that a key at the top of a JSON file holds.

    Whatever else the top holds is passed over. Memory is that of one object, whatever the file's size.

    Raises
    ------
    SourceError : absent, unreadable, or not of that form: a key occurs twice at the top, or something follows
        the object.
    """
    with open_untrusted(path, largest=LARGEST, error=SourceError) as file:
        text = _Text(file, path)
        seen = set()
        for _ in _separated(text, "{", "}"):
            key = str(text.value())
            if key in seen:
                raise text.wrong(f"the key {printable(key)} occurs twice")
            seen.add(key)
            text.expect(":")
            if text.peek() == "[":
                for _ in _separated(text, "[", "]"):
                    if isinstance(item := text.value(), dict):
                        yield key, item
            else:
                text.value()
        text.end()


def _separated(text: _Text, opening: str, closing: str) -> Iterator[None]:
    """Stop before each of the things that commas separate between two brackets."""
    text.expect(opening)
    if text.peek() != closing:
        yield
        while text.peek() != closing:
            text.expect(",")
            yield
    text.expect(closing)


class _Text:
    """A text that is read as far as it is needed, and forgotten."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        self._file, self._path = file, path
        self._bytes = codecs.getincrementaldecoder("utf-8-sig")()
        self._decoder = JSONDecoder()
        self._text, self._at, self._before = "", 0, 0
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is no blank; SourceError where there is none."""
        if not (found := self._next()):
            raise self.wrong("it ends too early")
        return found

    def _next(self) -> str:
        """Return the next character that is no blank, "" where there is none."""
        while True:
            while self._at < len(self._text):
                if (found := self._text[self._at]) not in " \t\r\n":
                    return found
                self._at += 1
            if not self._more():
                return ""

    def expect(self, wanted: str) -> None:
        """Pass over the next character, which must be this one."""
        if self.peek() != wanted:
            raise self.wrong(f"{wanted!r} is wanted")
        self._at += 1

    def end(self) -> None:
        """Refuse whatever but blanks is left."""
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
        """Read on, as much again as is not read yet, so that a long value is tried few times."""
        if self._ended:
            return False
        data = self._file.read(max(PIECE, len(self._text) - self._at))
        self._ended = not data
        try:
            more = self._bytes.decode(data, final=self._ended)
        except UnicodeDecodeError:
            raise SourceError("is not UTF-8 text", where=str(self._path)) from None
        self._before += self._at
        self._text, self._at = self._text[self._at :] + more, 0
        return True

    def wrong(self, what: str) -> SourceError:
        """Build the error for what is wrong here."""
        return SourceError(
            f"is not JSON of an object of arrays: {what} at character {self._before + self._at:,}",
            where=str(self._path),
        )
