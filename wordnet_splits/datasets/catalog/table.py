"""Catalogs: the classes of each source, with their synsets and published counts.

A catalog is a TSV under ``data/catalogs``: ``#`` lines on top hold the origin, then a header row, then one
row per class in the publisher's label order. ``mapped`` is the method that found the synsets:

exact
    the name is a lemma, and its first sense is meant; in the ImageNet family, where the class id is the
    publisher's synset, every class
variant
    the same after plural, spelling or joining
wider
    the synset is an ancestor of the name's meaning: newt for the marbled newt
hand
    a sense or word chosen by a person, with the reason in ``why``
head
    the head noun of a compound that WordNet lacks, as `wordnet_splits.linking` finds it; in none of
    the shipped catalogs
proposed
    chosen by `wordnet_splits.linking`, not confirmed by a person; in none of the shipped catalogs
empty
    a class without synsets, with the reason in ``why``

A column ``confidence`` may follow ``why``: confidence in the proposal, in [0, 1], empty if not computed.

A ``wider`` class is below its synset: synsets above that synset are above the class, but synsets below it
need not be below the class. A view (indoor, exterior) does not make a name narrower.

Counts known only as the sum over several classes are in ``count_group`` as ``split:group=sum``, the same text
for every class of the group; the counts of these classes are empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.files import FileId, file_id
from wordnet_splits.base.names import check_name
from wordnet_splits.base.registry import Registry
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.datasets.catalog.declarations import LOCAL, Declaration, Sources, unknown_source

CATALOGS = Path(__file__).parent.parent.parent / "data" / "catalogs"
CATALOGS_OF_PACKAGES: Final = Registry[Path]("catalog", "", "wordnet_splits.sources")
"""Files of the catalogs of other packages, by source; a source registers its catalog with itself."""
MAPPED = ("exact", "variant", "head", "wider", "hand", "proposed")
WIDER = frozenset({"head", "wider"})
"""Kinds of ``mapped`` whose synset is an ancestor of the name's meaning, as a head noun is by default."""
FIXED_COLUMNS = ("class_id", "index", "name", "superclass", "wnids", "mapped", "why")
UNSURE, SURE = "unsure", "confidence "
"""Starts of ``why``: for a proposal to be confirmed, and for a proposal that was sure when written."""
CONFIDENCE = "confidence"
"""The column after the fixed ones in a catalog that `catalog make` wrote; other catalogs lack it."""
TEXT_COLUMNS = ("class_id", "name", "superclass", "mapped", "why", "count_group")

_HEADER = re.compile("\\t".join(FIXED_COLUMNS) + r"(\tconfidence)?((?:\tcount_[^\t]+)+)\tcount_group")
_WNID = re.compile(r"n\d{8}")
_CONFIDENCE = re.compile(r"0(\.\d{1,9})?|1(\.0{1,9})?", re.ASCII)
_COUNT = re.compile(r"0|[1-9]\d{0,14}")  # no dataset has 10**15 images, and Python refuses 5,000 digits
_GROUP = re.compile(r"([a-z][a-z0-9]*):([^=\s]+)=([1-9]\d{0,14})")


@dataclass(frozen=True)
class CatalogClass:
    """One class of a source.

    ``index`` is its position in the publisher's label order, from 0. ``wnids`` are WordNet 3.0 synsets; more
    than one only where the name covers several. ``counts`` maps each of the publisher's splits to the number
    of its images, None where that is unknown or known only for the whole ``count_group``. ``confidence``, in
    [0, 1], is the confidence in the proposed ``wnids``, None if the catalog lacks it.
    """

    source: str
    class_id: str
    index: int
    name: str
    superclass: str
    wnids: tuple[str, ...]
    mapped: str
    why: str
    counts: dict[str, int | None] = field(hash=False)
    count_group: str
    confidence: float | None = None

    @property
    def covers(self) -> tuple[str, ...]:
        """The synsets whose hyponyms all belong to this class: ``wnids``, empty where these are wider."""
        return covered(self.wnids, self.mapped)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the synset is a proposal for a person to confirm, by writing ``hand`` for ``proposed``."""
        return self.mapped == "proposed" and not self.why.startswith(SURE)


def covered(wnids: tuple[str, ...], mapped: str) -> tuple[str, ...]:
    """Return the synsets whose hyponyms all belong to a class: ``wnids``, empty where these are wider."""
    return () if mapped in WIDER else wnids


@dataclass(frozen=True, repr=False)
class Catalog(Tabular):
    """The classes of a source, in the publisher's label order.

    ``splits`` are the publisher's splits, ``origin`` the comment lines of the table (where it comes from).
    """

    source: str
    classes: tuple[CatalogClass, ...]
    splits: tuple[str, ...]
    origin: tuple[str, ...]
    _sums: dict[str, dict[str, int]] = field(repr=False, hash=False)  # split -> count_group -> sum
    _by_id: dict[str, CatalogClass] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {c.class_id: c for c in self.classes})

    def __hash__(self) -> int:  # quick: `OwnHierarchy.place` looks catalogs up
        return hash((self.source, len(self.classes)))

    def __getitem__(self, class_id: str) -> CatalogClass:
        """Return the class with an id; UnknownNameError with near matches if it does not exist."""
        try:
            return self._by_id[class_id]
        except KeyError:
            raise unknown("class", class_id, self._by_id, where=f"source {self.source!r}") from None

    def __iter__(self) -> Iterator[CatalogClass]:
        return iter(self.classes)

    def __len__(self) -> int:
        return len(self.classes)

    def __contains__(self, class_id: object) -> bool:
        return class_id in self._by_id

    def __repr__(self) -> str:
        return f"Catalog({self.source!r}: {len(self):,} classes; splits {', '.join(self.splits)})"

    def rows(self) -> list[dict[str, object]]:
        """Return the classes with their synsets, and the published count of each split."""
        return [
            {"class_id": c.class_id, "name": c.name, "superclass": c.superclass}
            | {"wnids": " ".join(c.wnids), "mapped": c.mapped, **c.counts}
            for c in self.classes
        ]

    def column(self, name: str) -> list[str]:
        """Return one text column, in label order; UnknownNameError for any other name."""
        if name not in TEXT_COLUMNS:
            raise unknown("catalog column", name, TEXT_COLUMNS, where=f"source {self.source!r}")
        return [getattr(c, name) for c in self.classes]

    def line(self, class_id: str) -> int:
        """Return the line of a class in the file, from 1; UnknownNameError if the class does not exist."""
        return len(self.origin) + 2 + self[class_id].index

    def count(self, class_id: str, split: str) -> int | None:
        """Return the published number of images of a class in a split, None where it is not known."""
        self._check_split(split)
        return self[class_id].counts[split]

    def group_counts(self, split: str) -> dict[str, int]:
        """Return the published sum of each count_group of a split."""
        self._check_split(split)
        return dict(self._sums.get(split, {}))

    def total(self, split: str) -> int | None:
        """Return the published number of images of a split, None if a class in it is not counted."""
        self._check_split(split)
        sums = self.group_counts(split)
        total = sum(sums.values())
        for item in self.classes:
            count = item.counts[split]
            if count is None and item.count_group not in sums:
                return None
            total += count or 0
        return total

    def _check_split(self, split: str) -> None:
        if split not in self.splits:
            raise unknown("split", split, self.splits, where=f"source {self.source!r}")


@cache
def catalog_names() -> tuple[str, ...]:
    """Return the sources that have a shipped catalog, sorted."""
    return tuple(sorted(path.stem for path in CATALOGS.glob("*.tsv")))


def known_sources(sources: Sources = LOCAL) -> tuple[str, ...]:
    """Return the sources that have a catalog: the shipped ones, then the declared ones."""
    return (*catalog_names(), *CATALOGS_OF_PACKAGES, *sources.by_name)


def load_catalog(source: str, sources: Sources = LOCAL) -> Catalog:
    """Return the catalog of a source, shipped or declared by the user; ``wnids`` has the nodes of a hierarchy
    that takes the place of WordNet.

    Raises
    ------
    UnknownNameError : the source does not exist.
    DataError : the catalog of a declared source is absent or malformed, or names no node of its hierarchy.
    TaxonomyError : the hierarchy is malformed.
    """
    installed = _load_shipped(source)
    if installed is None and source in CATALOGS_OF_PACKAGES:
        installed = _read_file(file_id(CATALOGS_OF_PACKAGES[source]), source)
    if installed is not None:
        return installed if sources.hierarchy is None else sources.hierarchy.place(installed)
    declaration = sources.find(source)
    if declaration is None:
        raise unknown_source(source, known_sources(sources))
    return load_declared_catalog(declaration)


@cache
def _load_shipped(source: str) -> Catalog | None:
    return read_catalog(CATALOGS / f"{source}.tsv") if source in catalog_names() else None


def load_declared_catalog(declaration: Declaration) -> Catalog:
    """Return the catalog of a declared dataset; raises as `load_catalog`."""
    path, hierarchy = declaration.catalog_file, declaration.hierarchy
    try:
        catalog = _read_file(file_id(path), declaration.name, has_nodes=hierarchy is not None)
        return catalog if hierarchy is None else hierarchy.place(catalog, path)
    except OSError:
        hint = f"wordnet-splits catalog make --root {declaration.name}=DIR --out {path}"
        raise DataError("the catalog does not exist", where=str(path), hint=hint) from None


@lru_cache(maxsize=64)
def _read_file(file: FileId, source: str, *, has_nodes: bool = False) -> Catalog:
    return read_catalog(file[0], source, has_nodes=has_nodes)


def read_catalog(path: str | Path, source: str | None = None, *, has_nodes: bool = False) -> Catalog:
    """Return the catalog in a TSV file; the source is named after the file unless ``source`` names it.

    Parameters
    ----------
    has_nodes : whether the column ``wnids`` has nodes of a hierarchy in place of wnids, which
        `OwnHierarchy.place` looks up; a class without a node then needs no reason.

    Raises DataError if the file is unreadable or malformed, naming file and line.
    """
    path = Path(path)
    return _Reader(path, read_text(path).split("\n"), source or path.stem, has_nodes).read()


class _Reader:
    """Parser of a table; it keeps the line number for errors."""

    def __init__(self, path: Path, lines: list[str], source: str, has_nodes: bool) -> None:
        self.path = path
        self.source = source
        self.has_nodes = has_nodes
        self.lines = lines[:-1] if lines and lines[-1] == "" else lines
        self.line = 0
        self.sums: dict[str, dict[str, int]] = {}
        self.members: dict[str, int] = {}
        self.columns: tuple[str, ...] = FIXED_COLUMNS  # those before the counts

    def read(self) -> Catalog:
        origin = []
        while self.line < len(self.lines) and self.lines[self.line].startswith("#"):
            origin.append(self.lines[self.line].lstrip("# "))
            self.line += 1
        splits = self._header()
        classes: dict[str, CatalogClass] = {}
        while self.line < len(self.lines):
            self.line += 1
            item = self._row(self.lines[self.line - 1], len(classes), splits)
            if item.class_id in classes:
                raise self._error(f"class {item.class_id!r} occurs twice")
            classes[item.class_id] = item
        if not classes:
            raise self._error("a catalog must have a class")
        for group, members in self.members.items():
            if members < 2:
                raise self._error(f"count_group {group!r} has one class: give it as the count of that class")
        return Catalog(self.source, tuple(classes.values()), splits, tuple(origin), self.sums)

    def _header(self) -> tuple[str, ...]:
        self.line += 1
        header = self.lines[self.line - 1] if self.line <= len(self.lines) else ""
        match = _HEADER.fullmatch(header)
        splits = tuple(match[2].removeprefix("\tcount_").split("\tcount_")) if match else ()
        if match is None or len(set(splits)) != len(splits):
            columns = f"{' '.join(FIXED_COLUMNS)} [confidence] count_<split>... count_group"
            raise self._error("wrong header row", hint=f"expected {columns}")
        if match[1]:
            self.columns = (*FIXED_COLUMNS, CONFIDENCE)
        return splits

    def _row(self, line: str, position: int, splits: tuple[str, ...]) -> CatalogClass:
        cells = line.split("\t")
        columns = len(self.columns) + len(splits) + 1
        if len(cells) != columns:
            raise self._error(f"{columns} columns expected, found {len(cells)}")
        for cell in cells:
            if cell != cell.strip():
                raise self._error(f"blank around {cell!r}")
        class_id, index, name, superclass, wnids, mapped, why = cells[: len(FIXED_COLUMNS)]
        if not class_id or not name:
            raise self._error("empty class_id or name")
        for kind, text in (("class", class_id), ("class", name), ("superclass", superclass or "none")):
            check_name(kind, text, where=f"{self.path}:{self.line}")
        if index != str(position):
            raise self._error(f"index {index!r} where row order gives {position}")
        counts = {s: self._count(s, c) for s, c in zip(splits, cells[len(self.columns) : -1], strict=True)}
        confidence = cells[len(FIXED_COLUMNS)] if CONFIDENCE in self.columns else ""
        return CatalogClass(
            source=self.source,
            class_id=class_id,
            index=position,
            name=name,
            superclass=superclass,
            wnids=self._wnids(wnids, mapped, why),
            mapped=mapped,
            why=why,
            counts=counts,
            count_group=self._group(cells[-1], counts),
            confidence=self._confidence(confidence),
        )

    def _wnids(self, text: str, mapped: str, why: str) -> tuple[str, ...]:
        wnids = tuple(text.split(" ")) if text else ()
        for wnid in wnids:
            if not (self.has_nodes or _WNID.fullmatch(wnid)):
                raise self._error(f"{wnid!r} is not a wnid", hint="a wnid is n and eight digits, 'n02084071'")
        if len(set(wnids)) != len(wnids):
            raise self._error("a wnid occurs twice in one class")
        if mapped not in (MAPPED if wnids else ("",)):
            expected = " | ".join(MAPPED) if wnids else "empty, as there is not a wnid"
            raise self._error(f"mapped is {mapped!r}", hint=f"expected {expected}")
        if mapped in (("hand",) if self.has_nodes else ("hand", "")) and not why:
            raise self._error("a class mapped by hand or not at all needs a reason in 'why'")
        return wnids

    def _confidence(self, cell: str) -> float | None:
        if cell and not _CONFIDENCE.fullmatch(cell):
            raise self._error(f"confidence is {cell!r}", hint="from 0 to 1, as 0.79, or empty where unknown")
        return float(cell) if cell else None

    def _count(self, split: str, cell: str) -> int | None:
        if cell and not _COUNT.fullmatch(cell):
            hint = "a whole number, 0 where the split has none of the class, or empty where unknown"
            raise self._error(f"count_{split} is {cell!r}", hint=hint)
        return int(cell) if cell else None

    def _group(self, cell: str, counts: dict[str, int | None]) -> str:
        if not cell:
            return ""
        match = _GROUP.fullmatch(cell)
        if match is None or match[1] not in counts:
            raise self._error(f"count_group is {cell!r}", hint="expected split:group=sum")
        split, group, total = match[1], match[2], int(match[3])
        if counts[split] is not None:
            raise self._error(f"class of count_group {group!r} has a count_{split}, too")
        if self.sums.setdefault(split, {}).setdefault(group, total) != total:
            raise self._error(f"count_group {group!r} has two sums")
        self.members[group] = self.members.get(group, 0) + 1
        return group

    def _error(self, what: str, hint: str | None = None) -> DataError:
        return DataError(what, where=f"{self.path}:{max(self.line, 1)}", hint=hint)
