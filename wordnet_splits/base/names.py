"""Names from users and datasets: checks for tables of text, and printable forms for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from numbers import Integral
from typing import Final

from wordnet_splits.base.errors import DataError, SplitsError

MAX_NAME_LETTERS: Final = 256
"""Longest name of a class or split, in letters (ours have up to 53, a folder's name 255)."""

_REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_DIRECTION_OVERRIDES: Final = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def printable(text: object, longest: int = 200) -> str:
    """Return a text as a line for a terminal: control characters escaped, cut at ``longest`` letters."""
    whole = str(text)
    letters = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in whole[:longest])
    return "".join(letters) + ("..." if len(whole) > longest else "")


def is_one_line(text: str) -> bool:
    """Return whether a text fits one cell of a table of text and reads the same there.

    Tabs, line breaks and other control characters (Unicode's categories Cc, Zl and Zp) do not fit, nor do
    lone surrogates (Cs) and characters that override the direction of the text (U+202A to U+202E, U+2066 to
    U+2069). Every other character may be part of a word, such as the no-break and ideographic spaces, and
    the zero-width joiner and non-joiner of Persian and Hindi.
    """
    return text.isprintable() or not any(
        letter in _DIRECTION_OVERRIDES or unicodedata.category(letter) in _REFUSED_CATEGORIES
        for letter in text
    )


def check_name(
    kind: str, name: str, *, where: str, longest: int = MAX_NAME_LETTERS, error: type[SplitsError] = DataError
) -> None:
    """Raise an error for a name that a table of text cannot hold.

    Parameters
    ----------
    kind : kind of thing with the name, for the error: class, split, model.
    longest : most letters that it may have.

    Raises
    ------
    error : the name is empty, too long, not `is_one_line`, or begins or ends with a space.
    """
    if name and len(name) <= longest and is_one_line(name) and name == name.strip():
        return
    quoted = f"the {kind} '{printable(name, 40)}'"
    if not name.strip():
        problem = f"a {kind} has an empty name"
    elif len(name) > longest:
        problem = f"{quoted} has {len(name):,} letters, at most {longest:,} are read"
    elif not is_one_line(name):
        problem = f"{quoted} holds a tab, line break, control character or override of the text's direction"
    else:
        problem = f"blank around {quoted}"
    raise error(problem, where=where, hint="rename it: names are written into tables of text")


def same_spelling(name: str) -> str:
    """Return a name as names of classes are compared: composed (NFC), with single blanks for underscores."""
    return " ".join(unicodedata.normalize("NFC", name).replace("_", " ").split())


def listed(names: Sequence[object], most: int) -> str:
    """Return the first names as a printable line, with an ellipsis if there are more."""
    return ", ".join(map(printable, names[:most])) + (", ..." if len(names) > most else "")


def check_counts(*, where: str | None = None, **values: object) -> None:
    """Raise DataError for a value, by the name of its parameter, that is not a whole number from 1 on."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            message = f"{name} must be a whole number from 1 on, got {printable(repr(value), 40)}"
            raise DataError(message, where=where)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 edge``, ``405 candidates``, ``2 classes``."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
