"""Comparison of two manifests: the rows that differ, also in sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from wordnet_splits.base.names import counted
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.manifest.node_changes import NodeChanges, node_changes
from wordnet_splits.benchmark.manifest.parts import Manifest
from wordnet_splits.benchmark.manifest.tables import CLASS_IDENTITY, IMAGE_IDENTITY

TableRow = dict[str, Any]


@dataclass(frozen=True)
class RowChanges:
    """Rows that only one of two tables has, and pairs of rows with other values, as ``a`` and ``b``."""

    only_a: list[TableRow] = field(default_factory=list)
    only_b: list[TableRow] = field(default_factory=list)
    changed: list[TableRow] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Return the number of rows that differ."""
        return len(self.only_a) + len(self.only_b) + len(self.changed)


@dataclass(frozen=True)
class ManifestDiff(Tabular):
    """Differences between the classes and between the images of two manifests."""

    classes: RowChanges
    images: RowChanges

    @property
    def same(self) -> bool:
        """Whether the manifests agree."""
        return not self.classes.count + self.images.count

    def rows(self) -> Sequence[TableRow]:
        """Return one row for each class and image that differs."""
        return [
            {"of": of, "change": change} | {k: row.get(k) for k in ("source", "class_id", "image_id")}
            for of, table in (("class", self.classes), ("image", self.images))
            for change, rows in vars(table).items()
            for row in (r["a"] if change == "changed" else r for r in rows)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as ``diff --json`` prints it."""
        return {"same": self.same, **asdict(self)}


def compare_manifests(a: Manifest, b: Manifest) -> ManifestDiff:
    """Compare the classes and images of two manifests.

    Rows are identified by (source, class_id, group), or (source, image_id, split). Digests differ only where
    both are known.
    """
    identity = list(CLASS_IDENTITY)
    classes = _compare(a.classes.select(identity), b.classes.select(identity), "source", "class_id", "group")
    images = RowChanges()
    for part in sorted(a.parts.keys() | b.parts.keys()):
        part_changes = _compare(_identity(a, part), _identity(b, part), "source", "image_id", "split")
        for change, rows in vars(part_changes).items():
            getattr(images, change).extend(rows)
    return ManifestDiff(classes, images)


def _identity(manifest: Manifest, part: tuple[str, str]) -> pa.Table:
    columns = [*IMAGE_IDENTITY, "split", "group", "digest"]
    if part not in manifest.parts:
        return manifest.images("none").select(columns)
    return manifest.parts[part]().select(columns)


def _compare(a: pa.Table, b: pa.Table, *key: str) -> RowChanges:
    if a.equals(b):
        return RowChanges()
    rows_a = {tuple(r[k] for k in key): _readable(r) for r in a.to_pylist()}
    rows_b = {tuple(r[k] for k in key): _readable(r) for r in b.to_pylist()}
    return RowChanges(
        [rows_a[k] for k in sorted(rows_a.keys() - rows_b.keys())],
        [rows_b[k] for k in sorted(rows_b.keys() - rows_a.keys())],
        [
            {"a": rows_a[k], "b": rows_b[k]}
            for k in sorted(rows_a.keys() & rows_b.keys())
            if not _equal(rows_a[k], rows_b[k])
        ],
    )


def _readable(row: TableRow) -> TableRow:
    digest = row.get("digest")
    return {**row, "digest": digest.hex()} if isinstance(digest, bytes) else row


def _equal(a: TableRow, b: TableRow) -> bool:
    if None in (a.get("digest"), b.get("digest")):
        a, b = {**a, "digest": None}, {**b, "digest": None}
    return a == b


Row = Mapping[str, Any]
ClassKey = tuple[str, str]
"""(source, class_id)."""


@dataclass(frozen=True)
class Rename:
    """A class whose images have another class id in the other manifest, by their digests.

    Attributes
    ----------
    pictures : how many both have.
    removed, added : how many only the class before, or after, has.
    """

    source: str
    before: str
    after: str
    pictures: int
    removed: int
    added: int

    @property
    def sentence(self) -> str:
        """Return it in words."""
        changes = [f"{self.removed:,} more removed"] if self.removed else []
        changes += [f"{self.added:,} more added"] if self.added else []
        words = [f"class {self.before} renamed {self.after}", counted(self.pictures, "image"), *changes]
        return ", ".join(words)


@dataclass(frozen=True)
class ImageMoves:
    """Images that both manifests have, matched by id or digest, and images that only one manifest has.

    Attributes
    ----------
    pairs : rows of the same image before and after.
    removed, added : rows of images that only one manifest has.
    """

    pairs: list[tuple[Row, Row]]
    removed: list[Row]
    added: list[Row]


def image_moves(images: RowChanges) -> ImageMoves:
    """Pair the images that only one of two manifests has by source and digest."""
    waiting: dict[tuple[str, str], list[Row]] = defaultdict(list)
    pairs: list[tuple[Row, Row]] = [(row["a"], row["b"]) for row in images.changed]
    added: list[Row] = []
    for row in images.only_a:
        waiting[row["source"], row["digest"] or ""].append(row)
    for row in images.only_b:
        same_digest = waiting.get((row["source"], row["digest"])) if row["digest"] else None
        if same_digest:
            pairs.append((same_digest.pop(0), row))
        else:
            added.append(row)
    return ImageMoves(pairs, [row for rows in waiting.values() for row in rows], added)


def find_renames(classes: RowChanges, moves: ImageMoves) -> list[Rename]:
    """Return the renamed classes: most images of a removed class belong to an added class."""
    gone, new = _keys(classes.only_a) - _keys(classes.only_b), _keys(classes.only_b) - _keys(classes.only_a)
    shared = Counter((_key(a), _key(b)) for a, b in moves.pairs)
    before = Counter(_key(a) for a, _ in moves.pairs) + Counter(map(_key, moves.removed))
    after = Counter(_key(b) for _, b in moves.pairs) + Counter(map(_key, moves.added))
    return [
        Rename(a[0], a[1], b[1], count, before[a] - count, after[b] - count)
        for (a, b), count in sorted(shared.items())
        if a in gone and b in new and 2 * count > max(before[a], after[b])
    ]


@dataclass(frozen=True)
class DescribedDiff(ManifestDiff):
    """Differences between two manifests and their hierarchies, with a sentence for each change.

    Attributes
    ----------
    hierarchy : the differences between their hierarchies; None if WordNet decides both.
    """

    renames: Sequence[Rename] = ()
    words: Sequence[str] = ()
    hierarchy: NodeChanges | None = None

    @property
    def same(self) -> bool:
        """Whether the manifests agree, in their own hierarchies also."""
        return super().same and (self.hierarchy is None or self.hierarchy.same)

    def as_dict(self) -> dict[str, Any]:
        """Return the difference as ``diff --json`` prints it; ``hierarchy`` only where there is one."""
        data = super().as_dict()
        return data if self.hierarchy is not None else {k: v for k, v in data.items() if k != "hierarchy"}


def describe_diff(a: Manifest, b: Manifest) -> DescribedDiff:
    """Return `compare_manifests` with a sentence for each change of a class or its images."""
    difference = compare_manifests(a, b)
    classes, moves = difference.classes, image_moves(difference.images)
    renames = find_renames(classes, moves)
    new_names = {(r.source, r.before): r.after for r in renames}
    hierarchy = node_changes(a, b)
    words = [
        *(hierarchy.sentences() if hierarchy else ()),
        *(rename.sentence for rename in renames),
        *_class_sentences(classes, moves, renames),
        *_image_sentences(classes, moves, new_names),
    ]
    return DescribedDiff(classes, difference.images, renames, words, hierarchy)


def _key(row: Row) -> ClassKey:
    return row["source"], row["class_id"]


def _keys(rows: list[dict[str, Any]]) -> set[ClassKey]:
    return set(map(_key, rows))


def _group(row: Row) -> str:
    return row["group"] or "the classes left out"


def _class_sentences(classes: RowChanges, moves: ImageMoves, renames: list[Rename]) -> Iterator[str]:
    groups_after: dict[ClassKey, list[str]] = defaultdict(list)
    for row in classes.only_b:
        groups_after[_key(row)].append(_group(row))
    renamed = {(r.source, name) for r in renames for name in (r.before, r.after)}
    moved = set()
    for row in classes.only_a:
        if groups_after.get(_key(row)):
            moved.add(_key(row))
            yield f"class {row['class_id']} moved from {_group(row)} to {groups_after[_key(row)].pop(0)}"
    counts = {
        "removed": Counter(_key(r) for r in [*moves.removed, *(a for a, _ in moves.pairs)]),
        "added": Counter(_key(r) for r in [*moves.added, *(b for _, b in moves.pairs)]),
    }
    for change, rows in (("removed", classes.only_a), ("added", classes.only_b)):
        for row in rows:
            key, preposition = _key(row), "from" if change == "removed" else "to"
            if key not in renamed | moved:
                pictures = f", {counted(counts[change][key], 'image')}" if row["group"] else ""
                yield f"class {row['class_id']} {change} {preposition} {_group(row)}{pictures}"
    labels = sum(row["a"]["label"] != row["b"]["label"] for row in classes.changed)
    if labels:
        yield f"the labels of {counted(labels, 'class')} changed"


def _image_sentences(
    classes: RowChanges, moves: ImageMoves, new_names: Mapping[ClassKey, str]
) -> Iterator[str]:
    """Yield the changes of images in classes that both manifests have."""
    new = _keys(classes.only_b)
    gone = _keys(classes.only_a)
    for change, preposition, rows in (("removed", "from", moves.removed), ("added", "to", moves.added)):
        listed = Counter((row["class_id"], row["split"]) for row in rows if _key(row) not in (gone | new))
        for (class_id, split), count in sorted(listed.items()):
            yield f"{counted(count, 'image')} {change} {preposition} class {class_id} ({split})"
    changes: Counter[str] = Counter()
    for a, b in moves.pairs:
        name = new_names.get(_key(a), a["class_id"])
        if name != b["class_id"]:
            changes[f"of class {a['class_id']} now of class {b['class_id']}"] += 1
        elif a["split"] != b["split"]:
            changes[f"of class {b['class_id']} moved from {a['split']} to {b['split']}"] += 1
        elif a["digest"] and b["digest"] and a["digest"] != b["digest"]:
            changes[f"of class {b['class_id']} with other pixels"] += 1
        elif a["image_id"] != b["image_id"] and name == a["class_id"]:
            changes[f"of class {b['class_id']} renamed"] += 1
    yield from (f"{counted(count, 'image')} {change}" for change, count in sorted(changes.items()))


def row_words(row: Mapping[str, Any]) -> str:
    """Return a class or image of a diff in words; of a changed one, the columns that differ."""
    if "a" in row:
        a, b = row["a"], row["b"]
        return f"{row_words(a)}; " + ", ".join(f"{k} {a[k]} -> {b[k]}" for k in a if a[k] != b[k])
    where = " ".join(filter(None, (row["role"], row.get("split"), row["group"] and f"in {row['group']}")))
    return f"{row['source']} {row.get('image_id', row['class_id'])}: {where}"
