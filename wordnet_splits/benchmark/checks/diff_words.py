"""Differences of the classes, roles and images of two manifests, in sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.diff import ManifestDiff, RowChanges, diff_manifests

Row = Mapping[str, Any]
ClassKey = tuple[str, str]
"""(source, class_id)."""


@dataclass(frozen=True)
class Rename:
    """A class whose images have another class id in the other manifest, by their digests.

    Attributes
    ----------
    pictures : how many both have. removed, added : how many only the class before, or after, has.
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
        words = [f"class {self.before} renamed {self.after}", counted(self.pictures, "picture"), *changes]
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
    """Differences between two manifests, with the renamed classes, and a sentence for each change."""

    renames: Sequence[Rename] = ()
    words: Sequence[str] = ()


def describe_diff(a: Manifest, b: Manifest) -> DescribedDiff:
    """Compare two manifests as `diff_manifests`, with a sentence for each change of a class or its images."""
    difference = diff_manifests(a, b)
    classes, moves = difference.classes, image_moves(difference.images)
    renames = find_renames(classes, moves)
    new_names = {(r.source, r.before): r.after for r in renames}
    words = [
        *(rename.sentence for rename in renames),
        *_class_sentences(classes, moves, renames),
        *_image_sentences(classes, moves, new_names),
    ]
    return DescribedDiff(classes, difference.images, renames, words)


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
                pictures = f", {counted(counts[change][key], 'picture')}" if row["group"] else ""
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
            yield f"{counted(count, 'picture')} {change} {preposition} class {class_id} ({split})"
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
    yield from (f"{counted(count, 'picture')} {change}" for change, count in sorted(changes.items()))
