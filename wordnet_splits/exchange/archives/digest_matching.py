"""Which image of a source each picture of an archive is: the one with its digest, never one with its name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import DataError, Problem
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.duplicates.join import image_digests, image_labels, splits_known
from wordnet_splits.exchange.archives.archive_folders import Archive, ArchivePart, ArchivePicture
from wordnet_splits.exchange.entries import ListEntry
from wordnet_splits.manifest.tables import CUT_ORDER
from wordnet_splits.packed.reading import RAW_VIEW
from wordnet_splits.recipe import Group
from wordnet_splits.sources import source_class
from wordnet_splits.sources.pixels import check_bytes, decode_bytes
from wordnet_splits.sources.roots import Roots


@dataclass(frozen=True)
class LeftOut:
    """Pictures of one set that have no image id, and why."""

    folder: str
    reason: str
    paths: Sequence[str] = field(repr=False)

    def __str__(self) -> str:
        number = len(self.paths)
        return f"{self.folder}: {number:,} picture{'s have' if number != 1 else ' has'} no id: {self.reason}"


@dataclass
class Matched:
    """The images found, the classes that folders name, what has no id, and originals that cannot be read."""

    images: list[ListEntry] = field(default_factory=list)
    classes: list[ListEntry] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class _Original(NamedTuple):
    image_id: str
    class_id: str
    split: str


def match_archive(archive: Archive, roots: Roots, progress: Progress | None = None) -> Matched:
    """Return the images that the pictures of an archive are.

    A picture is compared with the originals of the publisher's splits that our benchmark takes this split of
    the set from; one in a class folder with those of its class, one outside the ID set with those of no ID
    class. Where originals are alike, they are taken in the order of their ids if they are of one class or
    the archive holds all of them; which one it is of several classes is not guessed.

    Raises
    ------
    DataError : a picture that does not decode, or cannot be read.
    SourceError : a root that is not this dataset, or in which positions identify no image.
    UnsafeDataError : a link that leaves the archive.
    """
    matches = Matched()
    originals = _Originals(roots, progress, matches.problems)
    used_images: set[tuple[str, str]] = set()
    of_id: dict[str, set[str]] = defaultdict(set)
    for part in sorted(archive.parts, key=_turn):
        group = part.group
        if group is None:
            _leave(matches, part, "no set that we know")
            continue
        matches.classes += [_entry("", group, class_id, "") for class_id in part.classes]
        if group.role == "id":
            of_id[group.source].update(part.classes)
        if group.view != RAW_VIEW:
            _leave(
                matches, part, f"resized by the authors, so that no original of {group.source} is the same"
            )
            continue
        publishers = _publishers(group, part.split)
        pool = originals.by_digest(group.source, publishers)
        if pool is None:
            _leave(matches, part, f"the originals are not at hand (--root {group.source}=DIR)")
            continue
        barred = of_id[group.source] if group.role != "id" else frozenset()
        free = {
            digest: [
                o for o in alike if o.class_id not in barred and (group.source, o.image_id) not in used_images
            ]
            for digest, alike in pool.items()
        }
        images = _match(part, _digested(archive, part, progress), free, matches)
        used_images |= {(group.source, entry.image_id or "") for entry in images}
        if group.role == "id":
            of_id[group.source].update(entry.class_id or "" for entry in images)
        matches.images += images
    return matches


def _turn(part: ArchivePart) -> tuple[bool, int, str]:
    """The ID set comes first, and splits in the order of our cuts."""
    is_id = part.group is not None and part.group.role == "id"
    return not is_id, CUT_ORDER.index(part.split), part.folder


def _publishers(group: Group, split: str) -> frozenset[str]:
    """Return the publisher's splits that a split of a group is from; of another split, any the group uses."""
    rules = [group.images[split]] if split in group.images else list(group.images.values())
    split_names = {name for rule in rules for name in rule.from_ or ()}
    return frozenset(split_names & {*source_class(group.source).splits}) or frozenset(
        source_class(group.source).splits
    )


Digested = dict[tuple[str | None, bytes], list[ArchivePicture]]
"""Pictures by the class of their folder and their digest."""


def _digested(archive: Archive, part: ArchivePart, progress: Progress | None) -> Digested:
    assert part.group is not None
    lossless = source_class(part.group.source).lossless
    pictures_by_digest: Digested = defaultdict(list)
    with (progress or Silent()).task(f"reading {part.folder}", len(part.pictures)) as task:
        for picture in part.pictures:
            pictures_by_digest[picture.class_id, _digest(archive, picture.path, lossless)].append(picture)
            task.advance()
    return pictures_by_digest


def _digest(archive: Archive, path: str, lossless: bool) -> bytes:
    where = printable(archive.base / path)
    try:
        data = read_image(archive.base / path, archive.root)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", where=where) from error
    if lossless:
        return digest_pixels(np.asarray(decode_bytes(data, where=where), np.uint8))
    if (reason := check_bytes(data)) is not None:
        raise DataError(reason, where=where, hint="unpack the archive again")
    return digest_file(data)


def _match(
    part: ArchivePart, pictures: Digested, free: Mapping[bytes, Sequence[_Original]], matches: Matched
) -> list[ListEntry]:
    assert part.group is not None
    images: list[ListEntry] = []
    left: dict[str, list[str]] = defaultdict(list)
    for (class_id, digest), alike in pictures.items():
        candidates = [o for o in free.get(digest, ()) if class_id in (None, o.class_id)]
        if len({o.class_id for o in candidates}) > 1 and len(alike) < len(candidates):
            left["originals of several classes are the same"] += [p.path for p in alike]
            continue
        for picture, original in zip(alike, candidates, strict=False):
            entry = _entry(part.split, part.group, original.class_id, original.image_id)
            images.append(entry._replace(path=picture.path, digest=digest))
        left[f"equal to no original of {part.group.source} that is left"] += [
            p.path for p in alike[len(candidates) :]
        ]
    matches.left_out += [
        LeftOut(part.folder, reason, sorted(paths)) for reason, paths in left.items() if paths
    ]
    return images


def _entry(split: str, group: Group, class_id: str, image_id: str) -> ListEntry:
    return ListEntry(
        split, group.name, source=group.source, class_id=class_id, image_id=image_id, role=group.role
    )


def _leave(matches: Matched, part: ArchivePart, reason: str) -> None:
    if part.pictures:
        matches.left_out.append(LeftOut(part.folder, reason, [p.path for p in part.pictures]))


class _Originals:
    """Digests of the originals: those that inventories have, else those of the roots given; read once."""

    def __init__(self, roots: Roots, progress: Progress | None, problems: list[Problem]) -> None:
        self._roots, self._progress, self._problems = roots, progress, problems
        self._known: dict[tuple[str, frozenset[str]], dict[bytes, list[_Original]] | None] = {}

    def by_digest(self, source: str, publishers: frozenset[str]) -> Mapping[bytes, list[_Original]] | None:
        """Return the originals of publisher's splits in the order of their ids; None where none is known."""
        at = (source, publishers)
        if at not in self._known:
            self._known[at] = self._read(source, publishers)
        return self._known[at]

    def _read(self, source: str, publishers: Collection[str]) -> dict[bytes, list[_Original]] | None:
        roots = {} if splits_known(source, {}) >= set(publishers) else self._roots
        splits = splits_known(source, roots) & set(publishers)
        if not splits:
            return None
        labels = image_labels(source, roots, splits)
        digests, problems = image_digests(source, labels, roots, 1, self._progress)
        self._problems += problems
        originals: dict[bytes, list[_Original]] = defaultdict(list)
        for image_id in sorted(digests):
            originals[digests[image_id]].append(_Original(image_id, *labels[image_id]))
        return dict(originals)
