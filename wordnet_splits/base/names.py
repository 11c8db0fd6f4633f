"""Names that a user gives, or a dataset: what may stand in the tables of text that we write and read back."""

from __future__ import annotations

import unicodedata
from typing import Final

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.untrusted import printable

MOST_LETTERS: Final = 256
"""Letters of the name of a class or split; ours have up to 53, a folder's name 255."""

_REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_DIRECTION_OVERRIDES: Final = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def is_one_line(text: str) -> bool:
    """Say whether a text stands in one cell of a table and is read there as it is written.

    Refused are tabs, line breaks and other control characters (Unicode's categories Cc, Zl and Zp), halves of
    surrogate pairs (Cs), and the characters that override the direction of what follows (U+202A to U+202E,
    U+2066 to U+2069). Every other character may be part of a word: the no-break and ideographic blanks, and
    the zero-width joiner and non-joiner of Persian and Hindi.
    """
    return text.isprintable() or not any(
        letter in _DIRECTION_OVERRIDES or unicodedata.category(letter) in _REFUSED_CATEGORIES
        for letter in text
    )


def check_name(
    what: str, name: str, *, where: str, longest: int = MOST_LETTERS, error: type[SplitsError] = DataError
) -> None:
    """Refuse a name that no table of text could hold, or that nobody could have meant.

    Parameters
    ----------
    what : of what it is the name, for the error: class, split, model.
    longest : the most letters that it may have.

    Raises
    ------
    error : it is empty, has more letters, holds a character that `is_one_line` refuses, or blanks stand
        around it.
    """
    if name and len(name) <= longest and is_one_line(name) and name == name.strip():
        return
    shown = f"the {what} '{printable(name, 40)}'"
    if not name.strip():
        wrong = f"a {what} has an empty name"
    elif len(name) > longest:
        wrong = f"{shown} has {len(name):,} letters, at most {longest:,} are read"
    elif not is_one_line(name):
        wrong = f"{shown} holds a tab, line break, control character or override of the text's direction"
    else:
        wrong = f"blank around {shown}"
    raise error(wrong, where=where, hint="give it another name: it stands in tables of text")
