"""Lists of words, and of names of classes: a word a line, or a table with a column of words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wordnet_splits.base.errors import DataError, OutputError, unknown
from wordnet_splits.base.files import write_text
from wordnet_splits.base.text_formats import cells_of_line, check_delimiter, numbered_lines
from wordnet_splits.base.untrusted import read_text

COLUMN, KIND = "word", "kind"
NAME, CLASS_ID = "name", "class_id"
NOUN, ADJECTIVE = "noun", "adjective"
SENTENCES = {NOUN: "the nice {}", ADJECTIVE: "This is a {} photo"}
"""Kind -> sentence of a word as NegLabel's authors publish it (XueJiang16/NegLabel, selected_neg_labels)."""
FEWEST_SENTENCES = 10
"""Smallest list that is refused for a common beginning of its lines."""
MAX_WORDS = 200_000
"""Largest number of words in a list; WordNet has 117,798 nouns."""


@dataclass(frozen=True)
class Word:
    """A word of a list, the number of its line, and its part of speech or class where the list has them."""

    line: int
    text: str
    kind: str | None = None
    class_id: str | None = None

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


def read_words(
    words: str | Path | Iterable[str], column: str | None = None, *, header: str = COLUMN
) -> WordList:
    """Read a list of words.

    Parameters
    ----------
    words : a text file with a word a line, a table (tabs in its first line, or CSV by its ending) with a
        column ``header``, or the words themselves. Blank lines and comments (#) are passed over. Lines
        in NegLabel's `SENTENCES` are read as their words.
    column : name of the column of the words, in place of ``header``.

    Raises
    ------
    DataError : no words, too many words, a word that is not text, other sentences than `SENTENCES`, or a
        table without the column or with a row that lacks a word.
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
    delimiter = _delimiter(path, entries[0][1], header) if path is not None and entries else None
    if delimiter is not None or column is not None:
        listed = _of_table(entries, delimiter or "\t", column or header, name)
    else:
        listed = _of_sentences([Word(n, line.strip()) for n, line in entries], name)
    if not listed:
        raise DataError("has no words", where=name)
    if len(listed) > MAX_WORDS:
        raise DataError(f"holds {len(listed):,} words, at most {MAX_WORDS:,} are read", where=name)
    return WordList(name, tuple(listed), lines, path)


def read_names(
    names: Mapping[str, str] | str | Path | Iterable[str], class_ids: Sequence[str], column: str | None = None
) -> dict[str, Word]:
    """Return class id -> its name, as of `read_words`.

    ``names`` : a mapping, or a table with a column ``class_id``, of some classes; else all, in the order of
    ``class_ids``.

    Raises
    ------
    DataError : not as many names as classes, or two of one class. UnknownNameError : an unknown class.
    """
    if isinstance(names, Mapping):
        where, words = "names", [Word(n, text, class_id=i) for n, (i, text) in enumerate(names.items(), 1)]
        if not all(isinstance(word.text, str) and word.text.strip() for word in words):
            raise DataError("every name must be text", where=where)
    else:
        word_list = read_words(names, column, header=NAME)
        where, words = word_list.name, list(word_list.words)
        if all(word.class_id is None for word in words):
            if len(words) != len(class_ids):
                reason = f"must have a name for each of {len(class_ids):,} classes, got {len(words):,}"
                raise DataError(reason, where=where, hint=f"or a table with columns {CLASS_ID} and {NAME}")
            return dict(zip(class_ids, words, strict=True))
    known = frozenset(class_ids)
    by_id: dict[str, Word] = {}
    for word in words:
        class_id = word.class_id or ""
        if class_id not in known:
            raise unknown("class", class_id, class_ids, where=f"{where}:{word.line}")
        if by_id.setdefault(class_id, word) != word:
            raise DataError(f"names the class {class_id} twice", where=f"{where}:{word.line}")
    return by_id


def _of_sentences(words: list[Word], where: str) -> list[Word]:
    """Return the words of `SENTENCES`. Raises DataError for lines of another template."""
    parts = [(kind, *sentence.split("{}")) for kind, sentence in SENTENCES.items()]
    found = [
        Word(word.line, word.text[len(start) : len(word.text) - len(end)], kind)
        for word in words
        for kind, start, end in parts
        if word.text.startswith(start) and word.text.endswith(end)
    ]
    if words and len(found) == len(words):
        return found
    begins = Counter(" ".join(word.text.split()[:2]) for word in words if len(word.text.split()) > 2)
    begin, times = begins.most_common(1)[0] if begins else ("", 0)
    if 2 * max(times, len(found)) > len(words) >= FEWEST_SENTENCES:
        reason = f"must have words, got sentences: {times:,} of {len(words):,} lines begin with {begin!r}"
        raise DataError(reason, where=where, hint="leave the template out of the lines")
    return words


def _delimiter(path: Path, first_line: str, header: str) -> str | None:
    """Return the delimiter of a table, by the ending of its file and its first line; None of a plain list."""
    delimiter = "," if path.suffix == ".csv" else "\t"
    is_table = delimiter in first_line or (
        first_line.strip() == header and path.suffix in (".csv", ".tsv")  # in other files it is a word
    )
    if not is_table and header in re.split("[,;\t]", first_line) and first_line.strip() != header:
        check_delimiter([first_line], delimiter, where=path.name)
    return delimiter if is_table else None


def _of_table(lines: Sequence[tuple[int, str]], delimiter: str, column: str, where: str) -> list[Word]:
    """Return the words of a table, from its lines and their numbers."""
    rows = [(n, cells_of_line(line, delimiter, where=f"{where}:{n}")) for n, line in lines]
    head = rows[0][1] if rows else []
    if column not in head and column in (COLUMN, NAME):
        raise DataError(
            f"has no column {column!r}, but {', '.join(head)}", where=where, hint="name the column: --column"
        )
    if column not in head:
        raise unknown("column", column, head, where=where)
    words = []
    for n, cells in rows[1:]:
        if len(cells) != len(head):
            raise DataError(f"{len(head)} columns expected, found {len(cells)}", where=f"{where}:{n}")
        row = dict(zip(head, cells, strict=True))
        if not row[column]:
            raise DataError(f"no {column} in this row", where=f"{where}:{n}")
        words.append(Word(n, row[column], row.get(KIND), row.get(CLASS_ID)))
    return words
