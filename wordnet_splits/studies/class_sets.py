"""Class sets: published lists of classes that shipped recipes rebuild, and their differences."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wordnet_splits.base.errors import DataError, RecipeError, unknown
from wordnet_splits.base.tabular import Records, Tabular
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.construct.classes import Membership, decide_membership
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.recipe import PublishedList, Recipe, class_set_names, load_recipe
from wordnet_splits.benchmark.rules import Verdict, sentence
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy, load

HEADERS = {
    "group": ("group", "role", "split", "set", "dataset", "category"),
    "superclass": ("superclass", "superclass_wnid", "superclass_node", "category"),
    "class_id": ("class_id", "wnid"),
}
"""Column -> its names in published files, in the order of preference."""

Line = tuple[str, ...]
"""The published columns of a class."""


@dataclass(frozen=True)
class SetClass:
    """A class of a set: its ``place`` in the group, the ``superclass`` that matched the rule, and why."""

    group: str
    place: int
    superclass: str
    source: str
    class_id: str
    name: str
    evidence: str


@dataclass(frozen=True)
class Difference:
    """A class with other columns in a published list than here; "" for a list that lacks the class."""

    class_id: str
    name: str
    published: str
    ours: str
    evidence: str


@dataclass(frozen=True)
class ClassSet(Tabular):
    """The classes that a recipe takes, in the order of its groups and rules.

    ``refused`` has the reason why the last rule, or one with a synset above the class, refused a class.
    """

    recipe: Recipe
    classes: tuple[SetClass, ...]
    refused: Mapping[str, str]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the classes."""
        return [vars(item) for item in self.classes]

    @property
    def published(self) -> PublishedList:
        """The published list; RecipeError if the recipe has no published list."""
        if self.recipe.published_list is None:
            raise RecipeError("rebuilds no published list", where=self.recipe.name)
        return self.recipe.published_list

    def lines(self) -> list[Line]:
        """Return the published columns of the classes in published groups."""
        published_list = self.published
        return [
            tuple(str(getattr(item, column)) for column in published_list.columns)
            for item in self.classes
            if published_list.groups is None or item.group in published_list.groups
        ]

    @property
    def same(self) -> bool:
        """Whether the list and the published list have the same SHA-256."""
        return list_sha256(self.lines(), ordered=self.published.ordered) == self.published.sha256

    def differences(self, published: Iterable[Line]) -> Records[Difference]:
        """Return the differences from a published list, sorted by class."""
        published_lines, rebuilt_lines = self._by_class(published), self._by_class(self.lines())
        items = {item.class_id: item for item in self.classes}
        names = {c.class_id: c.name for source in self.recipe.sources for c in load_catalog(source)}
        absent = f"no class of {' or '.join(self.recipe.sources)}"
        rows = []
        for class_id in sorted(published_lines.keys() | rebuilt_lines.keys()):
            lines = published_lines.get(class_id, ""), rebuilt_lines.get(class_id, "")
            if lines[0] != lines[1]:
                known = class_id in items
                why = items[class_id].evidence if known else self.refused.get(class_id, absent)
                rows.append(Difference(class_id, names.get(class_id, ""), *lines, why))
        return Records(rows)

    def _by_class(self, lines: Iterable[Line]) -> dict[str, str]:
        """Return class -> its other published columns, ``listed`` if it has no others."""
        at = self.published.columns.index("class_id")
        return {line[at]: " ".join(line[:at] + line[at + 1 :]) or "listed" for line in lines}


@dataclass(frozen=True)
class SetRow:
    """A set in the table of all sets: our classes, and how many differ from the published list.

    ``checked`` is ``same`` if our list and the published list have the same SHA-256, and ``differs``
    otherwise; the number of differences is then the recipe's, and `ClassSet.differences` lists them.
    """

    name: str
    paper: str
    groups: int
    classes: int
    only_published: int
    only_ours: int
    elsewhere: int
    checked: Literal["same", "differs"]
    note: str

    @property
    def as_declared(self) -> bool:
        """Whether the list equals the published one if and only if the recipe declares no differences."""
        return (self.checked == "same") == (not self.only_published + self.only_ours + self.elsewhere)


def class_set(name: str | Path | Recipe, taxonomy: Taxonomy | str | None = None) -> ClassSet:
    """Return the classes of a recipe.

    Examples
    --------
    >>> [item.name for item in class_set("imagenette").classes[:2]]
    ['tench', 'English springer']
    """
    recipe = load_recipe(name)
    membership = decide_membership(recipe, recipe.seed, taxonomy_of(recipe, taxonomy))
    why = {}
    for (source, class_id), verdicts in membership.refusals.items():
        group, verdict = max(reversed(verdicts), key=lambda each: bool(_superclass(each[1])))
        why[class_id] = _evidence(verdict, source, class_id, group.name, membership)
    return ClassSet(recipe, tuple(_classes(recipe, membership)), why)


def class_sets(taxonomy: Taxonomy | str | None = None) -> Records[SetRow]:
    """Return every shipped class set with its published numbers."""
    taxonomy = load(taxonomy)
    rows = []
    for name in class_set_names():
        rebuilt = class_set(name, taxonomy)
        recipe, published = rebuilt.recipe, rebuilt.published
        numbers = len(recipe.group), len(rebuilt.classes), published.only_published, published.only_ours
        checked: Literal["same", "differs"] = "same" if rebuilt.same else "differs"
        rows.append(SetRow(name, recipe.paper, *numbers, published.elsewhere, checked, published.note))
    return Records(rows)


def read_published(path: Path, rebuilt: ClassSet) -> list[Line]:
    """Read a published list from a TSV file with a header; ``#`` starts a comment.

    Lines of groups that the set does not have are left out.

    Raises
    ------
    DataError : not such a file. UnknownNameError : a column is missing.
    """
    text = [line for line in read_text(path).splitlines() if line.strip() and line[0] != "#"]
    try:
        head, *rows = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
    except (csv.Error, ValueError):
        raise DataError("is not a TSV file with a header", where=str(path)) from None
    indices = [_column_index(column, head, path) for column in rebuilt.published.columns]
    if any(len(row) != len(head) for row in rows):
        raise DataError("has rows of other lengths than its header", where=str(path))
    lines = [tuple(row[index] for index in indices) for row in rows]
    if "group" not in rebuilt.published.columns:
        return lines
    at = rebuilt.published.columns.index("group")
    lines = [(*line[:at], line[at].replace("_", "-").lower(), *line[at + 1 :]) for line in lines]
    group_names = {group.name for group in rebuilt.recipe.group}
    return [line for line in lines if line[at] in group_names]


def list_sha256(lines: Iterable[Line], *, ordered: bool) -> str:
    """Return the SHA-256 of a list's lines, their columns joined by tabs, sorted unless ``ordered``."""
    text = ["\t".join(line) + "\n" for line in lines]
    return hashlib.sha256("".join(text if ordered else sorted(text)).encode()).hexdigest()


def _column_index(column: str, head: Sequence[str], path: Path) -> int:
    for name in HEADERS[column]:
        if name in head:
            return list(head).index(name)
    raise unknown("column", column, head, where=str(path))


def _classes(recipe: Recipe, membership: Membership) -> Iterator[SetClass]:
    for group in recipe.group:
        catalog = load_catalog(group.source)
        verdicts = {
            c: membership.verdicts[group.name, (group.source, c)] for c in membership.groups[group.name]
        }
        ordered = sorted(verdicts, key=lambda c: (_rank(c, verdicts[c]), catalog[c].index, c))
        for position, c in enumerate(ordered):
            evidence = _evidence(verdicts[c], group.source, c, group.name, membership)
            yield SetClass(
                group.name, position, _superclass(verdicts[c]), group.source, c, catalog[c].name, evidence
            )


def _evidence(verdict: Verdict, source: str, class_id: str, group: str, membership: Membership) -> str:
    assert membership.context is not None
    return sentence(verdict, source=source, class_id=class_id, group=group, context=membership.context)


def _superclass(verdict: Verdict) -> str:
    """Return the synset that a rule matched, equal to the class or above it; "" without such a match."""
    return next((via.wnid or "" for via in verdict.via if via.relation in ("equal", "ancestor")), "")


def _rank(class_id: str, verdict: Verdict) -> int:
    """Return the rank that the rule gives a class; ties are in the order of the source."""
    for finding in verdict.findings:
        if finding.expression.operator == "listed":  # the array has the order of the labels
            ids: tuple[str, ...] = finding.expression.value.ids
            return ids.index(class_id) if class_id in ids else 0
        if finding.expression.operator == "siblings":  # family after family
            return int(finding.words[2])
    return 0
