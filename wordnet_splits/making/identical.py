"""``drop_leaks`` of pictures: what a benchmark holds twice is taken out, so that the rest is apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from wordnet_splits.making.images import Selection
from wordnet_splits.making.leaks import TRAINING_ROLES

KEPT_SPLITS = ("test", "val", "train")
"""Of an ID picture in several splits, the one in the first of these stays."""


def drop_identical(selections: Sequence[Selection]) -> None:
    """Drop what equals an ID image, OOD images that equal an external one, and what ID holds twice.

    Of an ID picture in two classes no image stays, since nobody knows which label is right; of one in two
    splits that of the split first in `KEPT_SPLITS`. Copies in one split of one class stay.
    """
    ready = [s for s in selections if s.awaiting is None]
    training = {d for s in ready if s.group.role in TRAINING_ROLES for d in s.digests.values()}
    of_id = {d for s in ready if s.group.role == "id" for d in s.digests.values()}
    inside = _within_id([s for s in ready if s.group.role == "id"])
    for selection in ready:
        twice = inside.get(selection.split, set())
        _drop(selection, {"id": twice, "external": of_id}.get(selection.group.role, training))


def _within_id(selections: Sequence[Selection]) -> dict[str, set[bytes]]:
    """Return the digests whose images go, by split."""
    times = Counter(d for s in selections for d in s.digests.values())
    classes: dict[bytes, set[tuple[str, str]]] = defaultdict(set)
    splits: dict[bytes, set[str]] = defaultdict(set)
    for selection in selections:
        for class_id, ids in selection.images.items():
            for digest in (selection.digests.get(i) for i in ids):
                if digest is not None and times[digest] > 1:
                    classes[digest].add((selection.group.source, class_id))
                    splits[digest].add(selection.split)
    gone: dict[str, set[bytes]] = defaultdict(set)
    for digest, digest_splits in splits.items():
        stays = None if len(classes[digest]) > 1 else min(digest_splits, key=KEPT_SPLITS.index)
        for split in digest_splits - {stays}:
            gone[split].add(digest)
    return gone


def _drop(selection: Selection, digests: Collection[bytes]) -> None:
    before = selection.count
    gone = {i for i, d in selection.digests.items() if d in digests}
    for class_id, ids in selection.images.items():
        selection.images[class_id] = [i for i in ids if i not in gone]
    selection.copies = before - selection.count
    if selection.expected is not None:
        selection.expected -= selection.copies
