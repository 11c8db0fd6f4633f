"""Import of the archives of Kim et al.: ``unknown-cifar-paper`` and ``unknown-imagenet-paper``.

The pictures are matched with the images of the sources by digest, never by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import DataError, Problem
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.duplicates.join import image_digests, image_labels, known_splits
from wordnet_splits.exchange.archives.kim_folders import Archive, ArchivePart, ArchivePicture, open_archive
from wordnet_splits.exchange.entries import ListEntry
from wordnet_splits.exchange.recipe_from_lists import benchmark_from_lists
from wordnet_splits.exchange.results import Imported, Unidentified
from wordnet_splits.making import BuildOptions
from wordnet_splits.manifest.tables import CUT_ORDER
from wordnet_splits.packed.reading import RAW_VIEW
from wordnet_splits.recipe import Group
from wordnet_splits.sources import source_class
from wordnet_splits.sources.pixels import check_bytes, decode_bytes
from wordnet_splits.sources.roots import Roots


def import_archive(path: Path, out: Path, *, name: str | None, options: BuildOptions) -> Imported:
    """Write recipe, lists and manifest of an unpacked archive; see `import_benchmark`.

    Raises
    ------
    DataError : not an archive, a damaged picture, no class of the ID set, or pictures without an id if
        ``allow_missing`` is not set.
    """
    archive = open_archive(path)
    bench = archive.bench
    matches = match_archive(archive, options.roots, options.progress)
    if matches.left_out and not options.allow_missing:
        hint = "give the roots of the originals, and leave out the rest with --allow-missing"
        raise DataError("; ".join(map(str, matches.left_out)), where=printable(path), hint=hint)
    entries = [*dict.fromkeys(matches.classes), *matches.images]
    if not any(entry.role == "id" for entry in entries):
        reason = (
            f"no class of {bench.id_set} is known: no folder has the name of one, no picture is an original"
        )
        raise DataError(reason, where=printable(path), hint="give the folder of the authors' archive")
    imported = benchmark_from_lists(
        entries, path, out, name=name or bench.name, roles={}, options=options, like=bench.recipe
    )
    return replace(
        imported,
        unmatched=[ListEntry("", row.folder, text) for row in matches.left_out for text in row.paths],
        problems=[*matches.problems, *imported.problems],
        left_out=matches.left_out,
        like=bench.like,
    )


@dataclass
class ArchiveMatches:
    """Matched images, classes of class folders, pictures without an id, and unreadable originals."""

    images: list[ListEntry] = field(default_factory=list)
    classes: list[ListEntry] = field(default_factory=list)
    left_out: list[Unidentified] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class _Original(NamedTuple):
    image_id: str
    class_id: str
    split: str


def match_archive(archive: Archive, roots: Roots, progress: Progress | None = None) -> ArchiveMatches:
    """Match the pictures of an archive with images of the sources.

    A picture is compared with the originals in the publisher's splits that the shipped benchmark takes this
    split from: of its class if it is in a class folder, of no ID class outside the ID set. Equal originals
    are taken in the order of their ids, if they are of one class or the archive holds all of them; otherwise
    the pictures are left out.

    Raises
    ------
    DataError : a picture cannot be read or decoded.
    SourceError : a root is not this dataset, or positions in it do not identify images.
    UnsafeDataError : a link leaves the archive.
    """
    matches = ArchiveMatches()
    originals = _Originals(roots, progress, matches.problems)
    used: set[tuple[str, str]] = set()
    id_classes: dict[str, set[str]] = defaultdict(set)
    for part in sorted(archive.parts, key=_order):
        group = part.group
        if group is None:
            _leave_out(matches, part, "an unknown set")
            continue
        matches.classes += [_entry("", group, class_id, "") for class_id in part.classes]
        if group.role == "id":
            id_classes[group.source].update(part.classes)
        if group.view != RAW_VIEW:
            reason = f"resized by the authors, so that no original of {group.source} is the same"
            _leave_out(matches, part, reason)
            continue
        pool = originals.by_digest(group.source, _publisher_splits(group, part.split))
        if pool is None:
            _leave_out(matches, part, f"the originals are not at hand (--root {group.source}=DIR)")
            continue
        excluded = id_classes[group.source] if group.role != "id" else frozenset()
        free = {
            digest: [
                o for o in alike if o.class_id not in excluded and (group.source, o.image_id) not in used
            ]
            for digest, alike in pool.items()
        }
        images = _match(part, _pictures_by_digest(archive, part, progress), free, matches)
        used |= {(group.source, entry.image_id or "") for entry in images}
        if group.role == "id":
            id_classes[group.source].update(entry.class_id or "" for entry in images)
        matches.images += images
    return matches


def _order(part: ArchivePart) -> tuple[bool, int, str]:
    """Sort the ID set first, and splits in the order of `CUT_ORDER`."""
    is_id = part.group is not None and part.group.role == "id"
    return not is_id, CUT_ORDER.index(part.split), part.folder


def _publisher_splits(group: Group, split: str) -> frozenset[str]:
    """Return the publisher's splits that a split of a group is drawn from; for a split it lacks, from any."""
    rules = [group.images[split]] if split in group.images else list(group.images.values())
    splits = frozenset(source_class(group.source).splits)
    return splits & {name for rule in rules for name in rule.from_ or ()} or splits


PicturesByDigest = dict[tuple[str | None, bytes], list[ArchivePicture]]
"""Pictures by the class of their folder and their digest."""


def _pictures_by_digest(archive: Archive, part: ArchivePart, progress: Progress | None) -> PicturesByDigest:
    assert part.group is not None
    lossless = source_class(part.group.source).lossless
    pictures_by_digest: PicturesByDigest = defaultdict(list)
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
    part: ArchivePart,
    pictures: PicturesByDigest,
    free: Mapping[bytes, Sequence[_Original]],
    matches: ArchiveMatches,
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
        Unidentified(part.folder, reason, sorted(paths)) for reason, paths in left.items() if paths
    ]
    return images


def _entry(split: str, group: Group, class_id: str, image_id: str) -> ListEntry:
    return ListEntry(
        split, group.name, source=group.source, class_id=class_id, image_id=image_id, role=group.role
    )


def _leave_out(matches: ArchiveMatches, part: ArchivePart, reason: str) -> None:
    if part.pictures:
        matches.left_out.append(Unidentified(part.folder, reason, [p.path for p in part.pictures]))


class _Originals:
    """Digests of the originals, from inventories or, if they have none, from roots; each is read once."""

    def __init__(self, roots: Roots, progress: Progress | None, problems: list[Problem]) -> None:
        self._roots, self._progress, self._problems = roots, progress, problems
        self._by_splits: dict[tuple[str, frozenset[str]], dict[bytes, list[_Original]] | None] = {}

    def by_digest(self, source: str, splits: frozenset[str]) -> Mapping[bytes, list[_Original]] | None:
        """Return the originals of some splits in the order of their ids; None if they are not at hand."""
        key = (source, splits)
        if key not in self._by_splits:
            self._by_splits[key] = self._read(source, splits)
        return self._by_splits[key]

    def _read(self, source: str, splits: Collection[str]) -> dict[bytes, list[_Original]] | None:
        roots = {} if known_splits(source, {}) >= set(splits) else self._roots
        at_hand = known_splits(source, roots) & set(splits)
        if not at_hand:
            return None
        labels = image_labels(source, roots, at_hand)
        digests, problems = image_digests(source, labels, roots, 1, self._progress)
        self._problems += problems
        originals: dict[bytes, list[_Original]] = defaultdict(list)
        for image_id in sorted(digests):
            originals[digests[image_id]].append(_Original(image_id, *labels[image_id]))
        return dict(originals)
