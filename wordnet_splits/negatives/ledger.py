"""The report of an audit of negative words: ledger, figures by OOD set, page, and the lists without leaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from wordnet_splits.audit.report import NAMESAKE, RELATIONS
from wordnet_splits.audit.report_base import (
    AuditReport,
    Page,
    about_hierarchy,
    examples,
    first_rows,
    shares,
)
from wordnet_splits.base import plotting
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.shapes import Bar, Bars
from wordnet_splits.base.tabular import text_table
from wordnet_splits.datasets.word_lists import WordList
from wordnet_splits.wordnet.taxonomy import Taxonomy

SCHEMA = schema_of(
    "line:int32 word kind senses relation known known_name edges:int32 path kin:int32 ood_sets ood_classes "
    "ood_images:int64"
)
"""Columns of a table of words."""
PAGE_COLUMNS = ("word", "relation", "ID class", "edges", "path", "test classes", "their images")
LIMITS = (
    "A word is read as the first of its senses in WordNet. Too strict: an encoder may",
    "read it in another. Too lax: an encoder may know synonyms that WordNet lacks.",
)
"""Caveats of an audit by WordNet, as lines for a terminal."""


@dataclass(frozen=True)
class NamedClass:
    """A class of an OOD set that a word names; ``images`` : its images in the set, None if unknown.

    ``first_sense`` : whether the word's first sense is the class's synset.
    """

    ood_set: str
    class_id: str
    name: str
    first_sense: bool
    images: int | None


@dataclass(frozen=True)
class NegativeWord:
    """A word, its closest relation to an ID class, and the classes of OOD sets that it names.

    Attributes
    ----------
    line : position in the list, from 1.
    kind : as in the list, None without such a column.
    senses : wnids, the most frequent first; none of a word that is not a noun.
    relation : equal, below, above, namesake or None.
    known, known_name : the ID class of that relation.
    edges, path : number of edges to it, and the wnids on the way; None and () for a namesake.
    kin : number of ID classes that the word equals, is below, is above, or shares a name with.
    """

    line: int
    word: str
    kind: str | None
    senses: tuple[str, ...]
    relation: str | None
    known: str | None
    known_name: str | None
    edges: int | None
    path: tuple[str, ...]
    kin: int
    names: tuple[NamedClass, ...]


@dataclass(frozen=True)
class OodSetCount:
    """How much of an OOD set the words name.

    Attributes
    ----------
    named, classes : named classes, and all.
    first_sense : classes named by the first sense of a word.
    words : words that name a class.
    named_images, images : images of these classes, and all; None if
        unknown.
    """

    ood_set: str
    named: int
    first_sense: int
    classes: int
    words: int
    named_images: int | None
    images: int | None


@dataclass(frozen=True)
class NegativesAudit(AuditReport):
    """Every negative word compared with the ID classes and with OOD sets.

    Attributes
    ----------
    known_not_judged : ids of ID classes without a confirmed synset, which are compared by name only.
    """

    schema: ClassVar = SCHEMA
    sizes: ClassVar = "{:,} words, {:,} ID classes"
    limits: ClassVar = LIMITS
    max_rows: ClassVar = 10

    known_not_judged: tuple[str, ...]
    words: tuple[NegativeWord, ...]
    ood_sets: tuple[OodSetCount, ...]
    taxonomy: Taxonomy = field(repr=False, compare=False)
    word_list: WordList = field(repr=False, compare=False)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of ``words``, of each relation, and of words with ``test`` classes or no sense."""
        relations = [word.relation for word in self.words]
        return {
            "words": len(self.words),
            **{relation: relations.count(relation) for relation in RELATIONS},
            "test": sum(bool(word.names) for word in self.words),
            "without_sense": sum(not word.senses for word in self.words),
        }

    @property
    def ok(self) -> bool:
        """Whether no word names or is related to an ID class, and none names a test class."""
        return not any(word.relation or word.names for word in self.words)

    @property
    def clean(self) -> tuple[str, ...]:
        """The words without a relation to an ID class, in the list's order."""
        return tuple(word.word for word in self.words if word.relation is None)

    @property
    def blind(self) -> tuple[str, ...]:
        """The words that do not name a class of an OOD set, in the list's order."""
        return tuple(word.word for word in self.words if not word.names)

    def write_clean(self, path: str | Path) -> None:
        """Write the lines of the list whose words have no relation to an ID class."""
        self.word_list.write(Path(path), {word.line for word in self.words if word.relation is not None})

    def write_without_test_names(self, path: str | Path) -> None:
        """Write the lines of the list, except for words that name a class of an OOD set."""
        self.word_list.write(Path(path), {word.line for word in self.words if word.names})

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return a row per word; its ``ood_sets`` and ``ood_classes`` are words in the same order."""
        return [_row(word) for word in self.words]

    def plot(self, path: Path) -> None:
        """Draw the shares of each OOD set's classes and images that are named; SVG, PNG or PDF by the name.

        Raises
        ------
        MissingPackageError : matplotlib is not installed. DataError : the audit has no OOD set.
        OutputError : the file cannot be written.
        """
        plotting.check_output(path, "the plot of negative words")
        if not self.ood_sets:
            raise DataError("a plot needs an OOD set", where=self.listed, hint="give one: --ood ssb-hard")
        shares = [("classes", item.ood_set, item.named, item.classes) for item in self.ood_sets]
        shares += [
            ("images", item.ood_set, item.named_images or 0, item.images or 0) for item in self.ood_sets
        ]
        bars = [
            Bar(ood_set, 100 * part / total, series=series)
            for series, ood_set, part, total in shares
            if total
        ]
        panel = Bars("", "% named by the words", tuple(bars))
        plotting.save_plot(
            plotting.Plot(f"OOD sets named by {self.listed}", (panel,)), path, salt="wordnet-splits"
        )

    def page(self) -> Page:
        """Return the words with a relation or a test class."""
        name = self.taxonomy.name
        rows = [
            (
                word.word,
                word.relation,
                word.known_name,
                word.edges,
                " > ".join(name(wnid) for wnid in word.path),
                "; ".join(f"{item.name} ({item.ood_set})" for item in word.names),
                _images(word),
            )
            for word in self.words
            if word.relation or word.names
        ]
        return Page(PAGE_COLUMNS, rows)

    def as_dict(self) -> dict[str, Any]:
        """Return what ``audit negatives --json`` prints."""
        return {
            **super().as_dict(),
            "known_not_judged": list(self.known_not_judged),
            "counts": self.counts,
            "ood_sets": [asdict(item) for item in self.ood_sets],
            "words": [asdict(word) for word in self.words],
        }

    @property
    def caveats(self) -> Sequence[str]:
        """`LIMITS`, in the words of the hierarchy."""
        return about_hierarchy(self.limits, self.taxonomy)

    def summary(self) -> list[tuple[str, str]]:
        """Return the figures as names and texts."""
        counts, hierarchy = self.counts, self.taxonomy
        meanings = {
            "equal": "the first sense is an ID class",
            "below": "the first sense is a kind of an ID class",
            "above": "an ID class is a kind of the first sense",
            NAMESAKE: "the name of an ID class, in another sense or not as a noun",
            "test": "the name of a class of an OOD set",
            "without_sense": f"not a noun of {hierarchy.called}: compared by name only",
        }
        figures = shares(meanings, counts, len(self.words))
        if self.known_not_judged:
            classes = examples(self.known_not_judged)
            figures.append(
                ("ID classes", f"{classes} have no confirmed {hierarchy.noun}: compared by name only")
            )
        return figures

    def tables(self, width: int | None, most: int | None) -> Iterator[list[str]]:
        """Yield a table of the OOD sets with their named classes and images, and one of each relation."""
        columns = ("OOD set", "named", "1st sense", "classes", "words", "images", "of")
        sets = [
            [
                item.ood_set,
                *(f"{n:,}" for n in (item.named, item.first_sense, item.classes, item.words)),
                *("?" if n is None else f"{n:,}" for n in (item.named_images, item.images)),
            ]
            for item in self.ood_sets
        ]
        yield text_table(columns, sets, right=columns[1:], width=width)[0] if sets else []
        for relation in RELATIONS:
            cells = [
                (word.word, relation, "" if word.edges is None else f"{word.edges}", str(word.known_name))
                for word in self.words
                if word.relation == relation
            ]
            yield first_rows(("word", "relation", "edges", "ID class"), cells, width, most, "edges")


def _row(word: NegativeWord) -> dict[str, Any]:
    """Return a word as a row of a table."""
    return {
        **{name: getattr(word, name) for name in SCHEMA.names if hasattr(word, name)},
        "senses": " ".join(word.senses),
        "path": " ".join(word.path),
        "ood_sets": " ".join(item.ood_set for item in word.names),
        "ood_classes": " ".join(item.class_id for item in word.names),
        "ood_images": _images(word),
    }


def _images(word: NegativeWord) -> int | None:
    """Return the number of images of the test classes that a word names, None if not all are counted."""
    images = [item.images for item in word.names if item.images is not None]
    return sum(images) if images and len(images) == len(word.names) else None
