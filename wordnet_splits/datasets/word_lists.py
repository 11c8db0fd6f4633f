"""Lists of words: a word a line, or a table with a column of words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wordnet_splits.base.errors import DataError, OutputError, unknown
from wordnet_splits.base.files import write_text
from wordnet_splits.base.text_formats import cells_of_line, check_delimiter, numbered_lines
from wordnet_splits.base.untrusted import read_text

COLUMN, KIND = "word", "kind"
NOUN = "noun"
MAX_WORDS = 200_000
"""Largest number of words in a list; WordNet has 117,798 nouns."""


@dataclass(frozen=True)
class Word:
    """A word of a list, the number of its line, and its part of speech where the list has one."""

    line: int
    text: str
    kind: str | None = None

    @property
    def is_noun(self) -> bool:
        """Whether the word may be looked up among nouns."""
        return self.kind in (None, NOUN)


@dataclass(frozen=True)
class WordList:
    """The words of a list, and the lines of its file."""

    name: str
    words: tuple[Word, ...]
    lines: tuple[str, ...]
    path: Path | None = None

    def write(self, path: Path, left_out: Collection[int]) -> None:
        """Write the list without the lines of these numbers.

        Raises OutputError if the file is the list's own, or cannot be written.
        """
        if self.path is not None and path.exists() and path.samefile(self.path):
            raise OutputError("is the list itself", where=str(path), hint="give another file")
        lines = (f"{line}\n" for n, line in enumerate(self.lines, 1) if n not in left_out)
        write_text(path, "".join(lines))


def read_words(words: str | Path | Iterable[str], column: str | None = None) -> WordList:
    """Read a list of words.

    Parameters
    ----------
    words : a text file with a word a line, a table (tabs in its first line, or CSV by its ending) with a
        column ``word``, or the words themselves. Lines that are blank or start with # are passed over.
    column : name of the column of the words.

    Raises
    ------
    DataError : no words, too many words, a word that is not text, or a table without the column or with a
        row that lacks a word.
    """
    path: Path | None = None
    if isinstance(words, str | Path):
        path = Path(words)
        name, lines = path.name, tuple(read_text(path).splitlines())
    else:
        name, lines = "list", tuple(words)
        if not all(isinstance(line, str) for line in lines):
            raise DataError("every word must be text", where=name)
    entries = numbered_lines(lines)
    delimiter = _delimiter(path, entries[0][1]) if path is not None and entries else None
    if delimiter is not None or column is not None:
        listed = _of_table(entries, delimiter or "\t", column, name)
    else:
        listed = [Word(n, line.strip()) for n, line in entries]
    if not listed:
        raise DataError("has no words", where=name)
    if len(listed) > MAX_WORDS:
        raise DataError(f"holds {len(listed):,} words, at most {MAX_WORDS:,} are read", where=name)
    return WordList(name, tuple(listed), lines, path)


def _delimiter(path: Path, first_line: str) -> str | None:
    """Return the delimiter of a table, by the ending of its file and its first line; None of a plain list."""
    delimiter = "," if path.suffix == ".csv" else "\t"
    is_table = delimiter in first_line or (
        first_line.strip() == COLUMN and path.suffix in (".csv", ".tsv")  # in other files it is a word
    )
    if not is_table and COLUMN in re.split("[,;\t]", first_line) and first_line.strip() != COLUMN:
        check_delimiter([first_line], delimiter, where=path.name)
    return delimiter if is_table else None


def _of_table(lines: Sequence[tuple[int, str]], delimiter: str, column: str | None, where: str) -> list[Word]:
    """Return the words of a table, from its lines and their numbers."""
    rows = [(n, cells_of_line(line, delimiter, where=f"{where}:{n}")) for n, line in lines]
    head = rows[0][1] if rows else []
    if column is not None and column not in head:
        raise unknown("column", column, head, where=where)
    if column is None and COLUMN not in head:
        raise DataError(
            f"has no column {COLUMN!r}, but {', '.join(head)}", where=where, hint="name the column: --column"
        )
    words = []
    for n, cells in rows[1:]:
        if len(cells) != len(head):
            raise DataError(f"{len(head)} columns expected, found {len(cells)}", where=f"{where}:{n}")
        row = dict(zip(head, cells, strict=True))
        if not row[column or COLUMN]:
            raise DataError(f"no {column or COLUMN} in this row", where=f"{where}:{n}")
        words.append(Word(n, row[column or COLUMN], row.get(KIND)))
    return words
