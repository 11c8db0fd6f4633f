"""Join two copies of a dataset: match their images by a rule on the ids, by pixels, or by position.

OpenOOD renumbered CIFAR, and stores MNIST and SVHN as JPEG, with other pixels than the publisher's. CIFAR is
joined by digest if both copies are at hand, the others by the number in the id, checked against the labels. A
guess by the position in each class is made only on request, and marked as unverified.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from wordnet_splits.base.errors import Problem, SourceError, unknown
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.parquet import schema_of, write_table_file
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.catalog import load_catalog
from wordnet_splits.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.duplicates.join_rules import (
    BY_ID,
    REASON,
    JoinRule,
    Labels,
    PositionGuess,
    join_rules,
    pair_by_position,
    position_guess,
)
from wordnet_splits.making.digesting import read_digests
from wordnet_splits.making.population import NO_POSITIONS
from wordnet_splits.sources import open_source, source_class
from wordnet_splits.sources.roots import Roots

COLUMNS = ("a_id", "b_id", "class", "digest", "how")
How = Literal["rule", "digest", "order", "unverified"]
By = Literal["evidence", "position"]


@dataclass(frozen=True)
class JoinedPair:
    """One image in both copies.

    Attributes
    ----------
    digest : None if pixels were not compared.
    how : ``rule``; ``digest``; ``order``, for equal pictures of a class, joined in the order of their ids; or
        ``unverified``, a guess by position.
    """

    a_id: str
    b_id: str
    class_id: str
    digest: bytes | None
    how: How


@dataclass(frozen=True)
class Join(Jsonable, Tabular):
    """The result of `join`.

    Attributes
    ----------
    a, b : the sources.
    reason : the rule, or what was compared, in words.
    splits : the splits compared.
    pairs : the joined images, sorted by ``a_id``.
    unmatched_a, unmatched_b : ids of each copy without a counterpart, sorted.
    problems : images that cannot be read.
    """

    derived = ("joined", "verified", "ambiguous")
    omitted = ("pairs",)

    a: str
    b: str
    reason: str
    splits: tuple[str, ...]
    pairs: Sequence[JoinedPair] = field(repr=False)
    unmatched_a: Sequence[str] = field(repr=False)
    unmatched_b: Sequence[str] = field(repr=False)
    problems: Sequence[Problem] = field(repr=False, default=())

    @property
    def joined(self) -> int:
        """Number of joined images."""
        return len(self.pairs)

    @property
    def ambiguous(self) -> int:
        """Number of images joined only by the order of their ids."""
        return sum(pair.how == "order" for pair in self.pairs)

    @property
    def verified(self) -> bool:
        """Whether every pair is joined by pixels, or by a rule that the labels confirm."""
        return all(pair.how != "unverified" for pair in self.pairs)

    @property
    def complete(self) -> bool:
        """Whether every image of ``a`` was read and joined."""
        return not self.unmatched_a and not any(p.source == self.a for p in self.problems)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per joined image: a_id, b_id, class, digest in hex or None, and how."""
        return [
            {"a_id": p.a_id, "b_id": p.b_id, "class": p.class_id}
            | {"digest": p.digest.hex() if p.digest else None, "how": p.how}
            for p in self.pairs
        ]

    def write(self, path: Path | str) -> None:
        """Write the rows as ``.csv`` or ``.parquet``. Raises DataError for another ending."""
        table = pa.Table.from_pylist(self.rows(), schema=schema_of(" ".join(COLUMNS)))
        write_table_file(table, Path(path), metadata={"a": self.a, "b": self.b, "reason": self.reason})


def join(
    a: str,
    b: str,
    *,
    by: By = "evidence",
    roots: Roots | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Join:
    """Match the images of source ``a`` with those of source ``b``.

    If ids follow a known rule, no root is needed; labels are compared, and an image whose label contradicts
    the rule is not joined. Other copies are joined by digest, and by split and class if both name them alike;
    equal pictures in the order of their ids. Without a root, shipped digests are used.

    Parameters
    ----------
    by : ``position`` guesses that image n of a class in a renumbered copy is the publisher's n-th. This has
        not been verified: all pairs are ``unverified``, and nothing frozen depends on them.

    Raises
    ------
    UnknownNameError : no such source, or no such way to join.
    SourceError : a root is needed and not given, or is not this dataset; positions in it identify no image;
        one copy is stored without loss, the other as JPEG; by position, counts of a class that differ.
    """
    for name in (a, b):
        source_class(name)
    if by not in get_args(By):
        raise unknown("way to join", by, get_args(By))
    if by == "position":
        guess = position_guess(a, b)
        result = _by_position(guess, roots or {})
        return result if guess.copy == a else _flipped(result)
    if (rule := join_rules().get(a)) is not None and rule.publisher == b:
        return _by_rule(rule, roots or {})
    if (rule := join_rules().get(b)) is not None and rule.publisher == a:
        return _flipped(_by_rule(rule, roots or {}))
    return _by_digest(a, b, roots or {}, workers, progress)


def _by_rule(rule: JoinRule, roots: Roots) -> Join:
    splits = known_splits(rule.copy, roots, digests=False) & known_splits(
        rule.publisher, roots, digests=False
    )
    if not splits:
        raise _no_root(rule.publisher, "image ids")
    copy_labels, publisher_labels = (
        image_labels(name, roots, splits) for name in (rule.copy, rule.publisher)
    )
    pairs = []
    for image_id, (class_id, _) in sorted(copy_labels.items()):
        publisher_id = rule.publisher_id(image_id)
        if publisher_id is not None and publisher_labels.get(publisher_id, ("", ""))[0] == class_id:
            pairs.append(JoinedPair(image_id, publisher_id, class_id, None, "rule"))
    return _result(rule.copy, rule.publisher, rule.reason, splits, pairs, copy_labels, publisher_labels)


def _by_position(guess: PositionGuess, roots: Roots) -> Join:
    if guess.order != BY_ID:
        root = roots.get(guess.publisher)
        layout = None if root is None else open_source(guess.publisher, root).layout
        if layout != guess.order:
            raise SourceError(
                f"only the publisher's {guess.order} files of {guess.publisher} have his order",
                where=None if root is None else str(root),
                hint=f"--root {guess.publisher}=DIR of these files",
            )
    copies = known_splits(guess.copy, roots, digests=False) & guess.splits.keys()
    copy_labels = image_labels(guess.copy, roots, copies)
    publisher_labels = image_labels(guess.publisher, roots, {guess.splits[split] for split in copies})
    if guess.order == BY_ID:
        publisher_labels = dict(sorted(publisher_labels.items()))
    publisher_splits = {split for _, split in publisher_labels.values()}
    shared_splits = {split for _, split in copy_labels.values() if guess.splits[split] in publisher_splits}
    if not shared_splits:
        raise _no_root(guess.copy, "image ids")
    offered = {guess.splits[split] for split in shared_splits}
    catalog = load_catalog(guess.copy)  # it may have some of the publisher's classes only
    copy_labels = {i: label for i, label in copy_labels.items() if label[1] in shared_splits}
    publisher_labels = {
        i: (c, split) for i, (c, split) in publisher_labels.items() if split in offered and c in catalog
    }
    pairs = [
        JoinedPair(a, b, c, None, "unverified")
        for a, b, c in pair_by_position(guess, copy_labels, publisher_labels)
    ]
    return _result(guess.copy, guess.publisher, REASON, shared_splits, pairs, copy_labels, publisher_labels)


def _by_digest(a: str, b: str, roots: Roots, workers: int, progress: Progress | None) -> Join:
    if source_class(a).lossless != source_class(b).lossless:
        lossy, exact = sorted((a, b), key=lambda name: source_class(name).lossless)
        raise SourceError(
            f"{lossy} is stored as JPEG and {exact} without loss, so that no digest can be the same",
            where=f"{a} and {b}",
            hint="join copies that are stored alike",
        )
    by_split = bool(set(source_class(a).splits) & set(source_class(b).splits))
    known_a, known_b = known_splits(a, roots), known_splits(b, roots)
    for name, splits in ((a, known_a), (b, known_b)):
        if not splits:
            raise _no_root(name, "digests")
    splits_a, splits_b = (known_a & known_b,) * 2 if by_split else (known_a, known_b)
    if not splits_a:
        raise _no_root(b, f"digests of {', '.join(sorted(known_a))}")
    labels = image_labels(a, roots, splits_a), image_labels(b, roots, splits_b)
    digests, problems = [], []
    for name, of_copy in zip((a, b), labels, strict=True):
        digests_of_copy, bad = image_digests(name, of_copy, roots, workers, progress)
        digests.append(digests_of_copy)
        problems += bad
    key = _Key(by_split, _same_classes(a, b))
    at: list[defaultdict[tuple[str, ...], list[str]]] = [defaultdict(list), defaultdict(list)]
    for copy in (0, 1):
        for image_id in sorted(digests[copy]):
            at[copy][key.of(labels[copy][image_id], digests[copy][image_id])].append(image_id)
    pairs = []
    for image, ids_a in at[0].items():
        ids_b = at[1].get(image, [])
        how: How = "digest" if len(ids_a) == len(ids_b) == 1 else "order"
        for id_a, id_b in zip(ids_a, ids_b, strict=False):
            pairs.append(JoinedPair(id_a, id_b, labels[0][id_a][0], digests[0][id_a], how))
    compared = [*(["split"] if key.by_split else []), *(["class"] if key.by_class else []), "digest"]
    reason = f"equal {' and '.join(compared)} of the {'pixels' if source_class(a).lossless else 'files'}"
    return _result(a, b, reason, splits_a | splits_b, pairs, *labels, problems)


@dataclass(frozen=True)
class _Key:
    """The columns in which two images must agree."""

    by_split: bool
    by_class: bool

    def of(self, labels: tuple[str, str], digest: bytes) -> tuple[str, ...]:
        class_id, split = labels
        return (split if self.by_split else "", class_id if self.by_class else "", digest.hex())


def _same_classes(a: str, b: str) -> bool:
    classes_a, classes_b = ({c.class_id for c in load_catalog(name)} for name in (a, b))
    return classes_a <= classes_b or classes_b <= classes_a


def known_splits(name: str, roots: Roots, *, digests: bool = True) -> set[str]:
    """Return the splits whose images are known, from a root or from inventories (with digests)."""
    if name in roots or not source_class(name).rooted:
        return set(source_class(name).splits)
    return {s for s in inventory_splits(name) if not digests or _has_digests(name, s)}


def _has_digests(name: str, split: str) -> bool:
    table = load_inventory(name, split)
    return table is not None and table["digest"].null_count == 0


def image_labels(name: str, roots: Roots, splits: Collection[str]) -> Labels:
    """Return class and split of every image of some splits, from a root or inventories.

    Raises
    ------
    SourceError : the root is not this dataset, or positions in it identify no image.
    """
    return {i: (c, s) for i, c, s in _rows(name, roots, splits)}


def _rows(name: str, roots: Roots, splits: Collection[str]) -> Iterator[tuple[str, str, str]]:
    columns = ("image_id", "class_id", "split")
    if name in roots or not source_class(name).rooted:
        source = open_source(name, roots.get(name))
        if source.order != "published":
            raise SourceError(
                f"no picture of {name} can be joined: {NO_POSITIONS}",
                where=str(source.root),
                hint="fetch the publisher's files",
            )
        tables = [pa.Table.from_batches([batch]) for batch in source.scan(splits)]
    else:
        tables = [table for s in sorted(splits) if (table := load_inventory(name, s)) is not None]
    for table in tables:
        yield from zip(*(table[c].to_pylist() for c in columns), strict=True)


def image_digests(
    name: str, labels: Labels, roots: Roots, workers: int, progress: Progress | None
) -> tuple[dict[str, bytes], list[Problem]]:
    """Return the digests of images, from a root or from inventories, and problems of unreadable images."""
    if name in roots or not source_class(name).rooted:
        source = open_source(name, roots.get(name))
        classes = {i: class_id for i, (class_id, _) in labels.items()}
        return read_digests(source, classes, {}, workers=workers, progress=progress)
    digests: dict[str, bytes] = {}
    for split in {split for _, split in labels.values()}:
        table = load_inventory(name, split)
        assert table is not None, "its splits are known"
        digests.update(zip(table["image_id"].to_pylist(), table["digest"].to_pylist(), strict=True))
    return digests, []


def _result(
    a: str,
    b: str,
    reason: str,
    splits: Collection[str],
    pairs: list[JoinedPair],
    labels_a: Collection[str],
    labels_b: Collection[str],
    problems: Sequence[Problem] = (),
) -> Join:
    unread = Counter((p.source, p.image_id) for p in problems)
    left_a = set(labels_a) - {p.a_id for p in pairs}
    left_b = set(labels_b) - {p.b_id for p in pairs}
    return Join(
        a,
        b,
        reason,
        tuple(sorted(splits)),
        sorted(pairs, key=lambda p: p.a_id),
        sorted(i for i in left_a if (a, i) not in unread),
        sorted(i for i in left_b if (b, i) not in unread),
        problems,
    )


def _flipped(result: Join) -> Join:
    pairs = [replace(p, a_id=p.b_id, b_id=p.a_id) for p in result.pairs]
    return replace(
        result,
        a=result.b,
        b=result.a,
        pairs=sorted(pairs, key=lambda p: p.a_id),
        unmatched_a=result.unmatched_b,
        unmatched_b=result.unmatched_a,
    )


def _no_root(name: str, subject: str) -> SourceError:
    return SourceError(
        f"no root given for source {name}, and its {subject} are not shipped", hint=f"--root {name}=DIR"
    )
