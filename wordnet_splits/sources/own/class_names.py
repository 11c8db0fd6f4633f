"""Names of classes that are stored as numbers: a line each of ``classnames.txt`` at the root, from 0 on.

A name is that of one number, wherever names are read: two classes of one name would be taken for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import check_link, read_text

CLASS_NAMES: Final = "classnames.txt"

Names = tuple[str, ...]


def class_names(root: Path) -> Names:
    """Return the lines of ``classnames.txt``, none where there is no such file; an empty line is no class.

    Raises
    ------
    SourceError : the file cannot be read, or two lines are equal.
    """
    path = root / CLASS_NAMES
    if not path.is_file():
        return ()
    if path.is_symlink():
        check_link(path, root)
    lines = (line.strip() for line in read_text(path, error=SourceError).splitlines())
    return distinct_names(lines, where=str(path))


def distinct_names(names: Iterable[str], *, where: str) -> Names:
    """Return the names of labels 0, 1, ..., of which none but the empty one may occur twice.

    Raises
    ------
    SourceError : two labels have one name.
    """
    listed = tuple(names)
    first: dict[str, int] = {}
    for number, name in enumerate(listed):
        if name and first.setdefault(name, number) != number:
            raise same_name(name, first[name], number, where=where)
    return listed


def same_name(name: str, label: object, other: object, *, where: str) -> SourceError:
    """Build the error for two labels of one name."""
    return SourceError(
        f"the labels {printable(label)} and {printable(other)} have the same name, {printable(name)}",
        where=where,
        hint="give each a name of its own, as in `crane (bird)` and `crane (machine)`",
    )


def class_of(label: object, names: Names, where: str) -> str | None:
    """Return the class of a label, None where it has none.

    Raises
    ------
    SourceError : it is a number, as an integer or as text, that ``names`` do not name: classes called "3"
        would be read as the number.
    """
    text = str(label) if isinstance(label, int | str) and not isinstance(label, bool) else ""
    if not (text.isascii() and text.isdigit()):
        return text or None
    if len(text) > len(str(len(names))) or int(text) >= len(names):
        raise SourceError(
            f"the label {printable(text)} is a number without a name",
            where=where,
            hint=f"{CLASS_NAMES} at the root has the name of a class a line, from 0 on",
        )
    return names[int(text)] or None
