"""Differences of two manifests in words: classes, pictures, rules, evidence, authors and terms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from wordnet_splits.base.about import About
from wordnet_splits.base.names import counted
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.diff import ManifestDiff, RowChanges, diff_manifests
from wordnet_splits.rules.model import ClassRule
from wordnet_splits.rules.words import rule_words

Row = Mapping[str, Any]
ClassKey = tuple[str, str]
"""(source, class_id)."""
EXAMPLES: Final = 3
"""Classes whose evidence is shown before and after."""
UNSET: Final = "not set"
LONGEST_VALUES: Final = 200
"""Most letters of the values of a recipe's key that a sentence shows."""


@dataclass(frozen=True)
class Rename:
    """A class whose pictures, by their digests, are those of another class id in the other manifest.

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
    """Pictures that both manifests have, by id or digest, and those that only one has.

    Attributes
    ----------
    pairs : rows of one picture before and after.
    removed, added : rows of pictures that only one manifest has.
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
    """Return the classes that were renamed: most pictures of the class that went are of the one that came."""
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
    """What differs between two manifests, with the classes that were renamed, and a sentence a change."""

    renames: Sequence[Rename] = ()
    words: Sequence[str] = ()


def describe_diff(a: Manifest, b: Manifest) -> DescribedDiff:
    """Compare two manifests as `diff_manifests`, and say in words what differs, rules and evidence too."""
    difference = diff_manifests(a, b)
    classes, moves = difference.classes, image_moves(difference.images)
    renames = find_renames(classes, moves)
    new_names = {(r.source, r.before): r.after for r in renames}
    versions = [f"version was {a.version}, is {b.version}"] if a.version != b.version else []
    words = [
        *versions,
        *(rename.sentence for rename in renames),
        *_class_sentences(classes, moves, renames),
        *_image_sentences(classes, moves, new_names),
        *_about_sentences(a.data.about, b.data.about),
        *_dataset_sentences(a, b),
        *_recipe_sentences(a.data.recipe.as_dict(), b.data.recipe.as_dict()),
        *_evidence_sentences(a, b),
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
    """Yield the changes of pictures in classes that both manifests have."""
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


def _about_sentences(a: About, b: About, of: str = "") -> Iterator[str]:
    """Yield the changes of ``[about]``; ``of`` follows each key, as in " of mypics"."""
    before, after = ({author.full_name: author for author in about.authors} for about in (a, b))
    for change, names in (("removed", before.keys() - after.keys()), ("added", after.keys() - before.keys())):
        yield from (f"author {name}{of} {change}" for name in sorted(names))
    for name in sorted(before.keys() & after.keys()):
        yield from _value_sentences(before[name].model_dump(), after[name].model_dump(), of=f" of {name}")
    if before.keys() == after.keys() and list(before) != list(after):
        yield f"the authors{of} are in the order {', '.join(after)}"
    values = (about.model_dump(exclude={"authors", "version_notes"}) for about in (a, b))
    yield from _value_sentences(*values, of=of)
    for version, note in b.version_notes.items():
        if a.version_notes.get(version) != note:
            yield f"note of version {version}{of}: {note}"


def _value_sentences(before: Mapping[str, Any], after: Mapping[str, Any], *, of: str) -> Iterator[str]:
    for key, value in after.items():
        if before[key] != value:
            values = f"was {before[key] or UNSET}, is {value or UNSET}"
            yield f"{key}{of} {values if len(values) <= LONGEST_VALUES else 'differs'}"


def _dataset_sentences(a: Manifest, b: Manifest) -> Iterator[str]:
    """Yield the changes of ``[about]`` of the datasets that both manifests carry."""
    for name in sorted(a.declarations.keys() & b.declarations.keys()):
        yield from _about_sentences(a.declarations[name].about, b.declarations[name].about, f" of {name}")


def _recipe_sentences(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    groups_a, groups_b = ({g["name"]: g for g in recipe.get("group", ())} for recipe in (a, b))
    for name in (name for name in groups_b if name in groups_a):
        before, after = (groups[name].get("classes") for groups in (groups_a, groups_b))
        if before != after:
            yield f'the rule of {name} was "{_rule(before)}", is "{_rule(after)}"'
        others = sorted(
            key
            for key in (groups_a[name].keys() | groups_b[name].keys()) - {"classes"}
            if groups_a[name].get(key) != groups_b[name].get(key)
        )
        for key in others:
            yield f"{key} of {name} was {groups_a[name].get(key, UNSET)}, is {groups_b[name].get(key, UNSET)}"
    for name in sorted(groups_a.keys() - groups_b.keys()):
        yield f"the group {name} was removed"
    for name in sorted(groups_b.keys() - groups_a.keys()):
        yield f"the group {name} was added: {_rule(groups_b[name].get('classes'))}"
    for key in sorted((a.keys() | b.keys()) - {"group", "version"}):
        if a.get(key) != b.get(key):
            values = f"was {a.get(key, UNSET)}, is {b.get(key, UNSET)}"
            yield f"{key} {values if len(values) <= LONGEST_VALUES else 'of the recipe differs'}"


def _rule(value: Any) -> str:
    try:
        return rule_words(ClassRule.model_validate(value))
    except ValidationError:  # a rule of another version of this program
        return str(value)


def _evidence_sentences(a: Manifest, b: Manifest) -> Iterator[str]:
    """Yield how many classes that both have in one group have another evidence, with examples."""
    if a.data.fingerprints.explanation == b.data.fingerprints.explanation:
        return
    evidence = [
        {
            (row["source"], row["class_id"], row["group"]): row["evidence"]
            for row in manifest.classes.select(["source", "class_id", "group", "evidence"]).to_pylist()
        }
        for manifest in (a, b)
    ]
    before, after = evidence
    differing = [key for key in sorted(before.keys() & after.keys()) if before[key] != after[key]]
    if differing:
        yield f"the evidence of {counted(len(differing), 'class')} differs"
    for key in differing[:EXAMPLES]:
        yield f'evidence of {key[1]} was "{before[key]}", is "{after[key]}"'
