"""Names that a user gives, or a dataset: what may stand in the tables of text that we write and read back."""

from __future__ import annotations

from typing import Final

from wordnet_splits.errors import DataError, SplitsError
from wordnet_splits.untrusted import printable

MOST_LETTERS: Final = 256
"""Letters of the name of a class or split; ours have up to 53, a folder's name 255."""


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
    error : it is empty, has more letters, holds a tab, a line break, a control character or half of a
        surrogate pair, or blanks stand around it.
    """
    if name and len(name) <= longest and name.isprintable() and name == name.strip():
        return
    shown = f"the {what} '{printable(name, 40)}'"
    if not name.strip():
        wrong = f"a {what} has an empty name"
    elif len(name) > longest:
        wrong = f"{shown} has {len(name):,} letters, at most {longest:,} are read"
    elif not name.isprintable():
        wrong = f"{shown} holds a tab, line break or control character"
    else:
        wrong = f"blank around {shown}"
    raise error(wrong, where=where, hint="give it another name: it stands in tables of text")
