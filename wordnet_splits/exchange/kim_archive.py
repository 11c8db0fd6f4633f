"""Import of the archives of Kim et al.: ``unknown-cifar-paper`` and ``unknown-imagenet-paper``.

``<bench>/{train,valid,test}/<set>/{labels,no-labels}/...``, and ``<bench>/train/<ID set>/<class>/...``. Only
the ID sets have class folders; their ``no-labels`` repeats ``labels``. The other sets have no classes: the
folders below their ``no-labels`` exist only for torchvision's reader, and their names are ignored. Images of
the archive are matched with source images by digest, never by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from fix_resize.decode import EXTENSIONS, check_bytes, decode_bytes
from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import DataError, Problem, SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.text_formats import read_toml
from wordnet_splits.base.untrusted import read_image
from wordnet_splits.benchmark.construct.digesting import read_digests
from wordnet_splits.benchmark.construct.population import NO_POSITIONS
from wordnet_splits.benchmark.images.raw_images import RAW_VIEW
from wordnet_splits.benchmark.manifest.tables import CUT_ORDER
from wordnet_splits.benchmark.recipe import Group, Recipe, load_recipe
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.datasets.sources import open_source, source_class
from wordnet_splits.datasets.sources.layouts.walk import entries, folders, subfolder
from wordnet_splits.exchange.formats import ListEntry
from wordnet_splits.exchange.recipe_from_lists import (
    Imported,
    ImportOptions,
    Unidentified,
    benchmark_from_lists,
)

COLUMNS = ("image_id", "class_id", "split")


class Original(NamedTuple):
    """An image of a source."""

    image_id: str
    class_id: str
    split: str


def find_originals(
    name: str, splits: frozenset[str], options: ImportOptions, problems: list[Problem]
) -> Mapping[bytes, list[Original]] | None:
    """Return the images of some splits by digest, in the order of their ids; None if no split is at hand.

    Digests are from inventories or, if these do not have them all, from the images below the source's root.
    ``problems`` takes a problem for each image that cannot be read.
    """
    shipped = {
        split: table
        for split in splits & set(inventory_splits(name))
        if (table := load_inventory(name, split)) is not None and table["digest"].null_count == 0
    }
    rooted = source_class(name).rooted
    originals: dict[bytes, list[Original]] = defaultdict(list)
    if rooted and (shipped.keys() == splits or name not in options.roots):
        if not shipped:
            return None
        table = pa.concat_tables(
            [shipped[split].select([*COLUMNS, "digest"]) for split in sorted(shipped)]
        ).sort_by("image_id")
        for *columns, digest in zip(*(table[c].to_pylist() for c in (*COLUMNS, "digest")), strict=True):
            originals[digest].append(Original(*columns))
        return originals
    source = open_source(name, options.roots.get(name))
    if source.order != "published":
        raise SourceError(
            f"no image of {name} can be identified: {NO_POSITIONS}",
            where=str(source.root),
            hint="fetch the publisher's files",
        )
    found = {row[0]: Original(*row) for row in source.rows(splits)}
    classes = {image_id: original.class_id for image_id, original in found.items()}
    digests, unreadable = read_digests(source, classes, {}, workers=1, progress=options.progress)
    problems += unreadable
    for image_id in sorted(digests):
        originals[digests[image_id]].append(found[image_id])
    return originals


TABLE: Final = Path(__file__).parent.parent / "data" / "exchange" / "kim-archive.toml"
SPLIT_FOLDERS: Final = {"train": "train", "valid": "val", "test": "test"}


@dataclass(frozen=True)
class Bench:
    """One of the two archives, with its name by its authors (``folder``) and by us.

    ``like`` is the shipped benchmark with the same groups; ``sets`` has its group by the name of a folder.
    """

    folder: str
    name: str
    like: str
    sets: Mapping[str, str]

    @property
    def recipe(self) -> Recipe:
        """Return the recipe of ``like``."""
        return load_recipe(self.like)

    @property
    def id_set(self) -> str:
        """Return the folder of the ID set."""
        ids = {group.name for group in self.recipe.groups_with_role("id")}
        return next(folder for folder, group in self.sets.items() if group in ids)


@cache
def benches() -> tuple[Bench, ...]:
    """Return the two archives."""
    return tuple(Bench(folder, **row) for folder, row in read_toml(TABLE).items())


class ArchivePart(NamedTuple):
    """A set of a split; an unknown set has the ``group`` None.

    ``classes`` have a class folder, even if it is empty; ``images`` maps each image's path in the bench
    to the class of its folder, None if the folder is not a class.
    """

    folder: str
    split: str
    group: Group | None
    classes: tuple[str, ...]
    images: Mapping[str, str | None]


class Archive(NamedTuple):
    """An unpacked archive in ``root``, inside which links are followed; ``base`` is its bench folder."""

    bench: Bench
    root: Path
    base: Path
    parts: Sequence[ArchivePart]


def import_archive(path: Path, out: Path, *, name: str | None, options: ImportOptions) -> Imported:
    """Write recipe, lists and manifest of an unpacked archive; see `import_benchmark`."""
    archive = open_archive(path)
    bench = archive.bench
    matches = match_archive(archive, options)
    if matches.left_out and not options.allow_missing:
        hint = "give the roots of the originals, and leave out the rest with --allow-missing"
        raise DataError("; ".join(map(str, matches.left_out)), where=printable(path), hint=hint)
    if not any(entry.role == "id" for entry in matches.entries):
        reason = f"no class of {bench.id_set} found"
        raise DataError(reason, where=printable(path), hint="give the folder of the authors' archive")
    listed = list(dict.fromkeys(matches.entries))
    imported = benchmark_from_lists(
        listed, path, out, name=name or bench.name, roles={}, options=options, like=bench.recipe
    )
    return replace(
        imported,
        unmatched=[ListEntry("", row.folder, text) for row in matches.left_out for text in row.paths],
        problems=[*matches.problems, *imported.problems],
        left_out=matches.left_out,
        like=bench.like,
    )


def open_archive(path: Path) -> Archive:
    """List an unpacked archive; no image is read.

    ``path`` : ``cifar-bench`` or ``imagenet-bench`` under any name, or a folder that contains either.
    """
    if not path.is_dir():
        raise DataError("no such folder", where=printable(path))
    root = path.resolve()
    candidates = [(bench, base) for bench in benches() if (base := _base(bench, root)) is not None]
    names = [bench.folder for bench in benches()]
    if len(candidates) > 1:
        raise DataError(f"contains both {' and '.join(names)}", where=printable(path), hint="give one")
    if not candidates:
        folders_needed = " or ".join(f"{{train,valid,test}}/{bench.id_set}" for bench in benches())
        reason = f"is not an archive of Kim et al.: no folder {folders_needed} here"
        hint = f"unpack {' or '.join(names)} and give that folder"
        raise DataError(reason, where=printable(path), hint=hint)
    bench, base = candidates[0]
    groups = {group.name: group for group in bench.recipe.group}
    parts = []
    for split in SPLIT_FOLDERS:
        top = subfolder(base, split, root)
        for name in folders(top, root) if top is not None else ():
            group = groups[bench.sets[name]] if name in bench.sets else None
            parts.append(_part(f"{split}/{name}", group, base, root))
    if not any(part.images for part in parts):
        raise DataError("contains no image", where=printable(path))
    return Archive(bench, root, base, parts)


def _base(bench: Bench, root: Path) -> Path | None:
    for base in (root, root / bench.folder):
        if any(subfolder(base, f"{split}/{bench.id_set}", root) is not None for split in SPLIT_FOLDERS):
            return base
    return None


def _part(folder: str, group: Group | None, base: Path, root: Path) -> ArchivePart:
    path, split = base / folder, folder.partition("/")[0]
    of_classes = group is not None and group.role == "id"
    labels = subfolder(path, "labels", root) if of_classes else None
    bare = subfolder(path, "no-labels", root)
    if labels is None and bare is None:
        if group is not None and not (of_classes and split == "train"):
            names = "labels or no-labels" if of_classes else "no-labels"
            raise DataError(f"must contain a folder {names}", where=printable(path), hint="unpack it again")
        labels = path
    catalog = load_catalog(group.source) if group is not None and labels is not None else ()
    classes = tuple(name for name in folders(labels, root) if name in catalog) if labels is not None else ()
    top = labels or bare or path
    images = {}
    for file in sorted(_image_files(top, root), key=lambda file: file.relative_to(base).as_posix()):
        top_folder = file.relative_to(top).parts[0]
        images[file.relative_to(base).as_posix()] = top_folder if top_folder in classes else None
    return ArchivePart(folder, SPLIT_FOLDERS[split], group, classes, images)


def _image_files(folder: Path, root: Path) -> Iterator[Path]:
    for entry in entries(folder, root):
        if entry.is_dir():
            yield from _image_files(Path(entry.path), root)
        elif entry.name.rpartition(".")[2].lower() in EXTENSIONS:
            yield Path(entry.path)


@dataclass
class ArchiveMatches:
    """Matched images and classes of class folders, images without an id, and unreadable originals."""

    entries: list[ListEntry] = field(default_factory=list)
    left_out: list[Unidentified] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def match_archive(archive: Archive, options: ImportOptions) -> ArchiveMatches:
    """Match the images of an archive with images of the sources.

    An archive's image is compared with the originals in the publisher's splits, which the shipped
    benchmark uses for this split: originals of its class if it is in a class folder, originals outside all ID
    classes if it is outside the ID set. Equal originals are assigned in the order of their ids if they share
    a class or the archive holds them all; otherwise the images are left out.
    """
    matches = ArchiveMatches()
    read_originals = cache(lambda source, splits: find_originals(source, splits, options, matches.problems))
    used: set[tuple[str, str]] = set()
    id_classes: dict[str, set[str]] = defaultdict(set)

    def order(part: ArchivePart) -> tuple[bool, int, str]:  # the ID set first
        is_id = part.group is not None and part.group.role == "id"
        return not is_id, CUT_ORDER.index(part.split), part.folder

    for part in sorted(archive.parts, key=order):
        group = part.group
        if group is None:
            _leave_out(matches, part, {"unknown set": list(part.images)})
            continue
        matches.entries += [_entry("", group, class_id, "") for class_id in part.classes]
        if group.role == "id":
            id_classes[group.source].update(part.classes)
        if group.view != RAW_VIEW:
            reason = f"the authors resized them, so they cannot equal images of {group.source}"
            _leave_out(matches, part, {reason: list(part.images)})
            continue
        originals = read_originals(group.source, _publisher_splits(group, part.split))
        if originals is None:
            reason = f"the original images are required (--root {group.source}=DIR)"
            _leave_out(matches, part, {reason: list(part.images)})
            continue
        excluded = id_classes[group.source] if group.role != "id" else frozenset()
        left: dict[str, list[str]] = defaultdict(list)
        for (class_id, digest), paths in _by_digest(archive, part, group, options.progress).items():
            candidates = [
                original
                for original in originals.get(digest, ())
                if class_id in (None, original.class_id)
                and original.class_id not in excluded
                and (group.source, original.image_id) not in used
            ]
            if len({o.class_id for o in candidates}) > 1 and len(paths) < len(candidates):
                left["equal originals in several classes"] += paths
                continue
            for path, original in zip(paths, candidates, strict=False):
                entry = _entry(part.split, group, original.class_id, original.image_id)
                matches.entries.append(entry._replace(path=path, digest=digest))
                used.add((group.source, original.image_id))
                if group.role == "id":
                    id_classes[group.source].add(original.class_id)
            left[f"no remaining image of {group.source} is equal"] += paths[len(candidates) :]
        _leave_out(matches, part, left)
    return matches


def _publisher_splits(group: Group, split: str) -> frozenset[str]:
    """Return the publisher's splits that a split of a group is drawn from; for a split it lacks, from any."""
    rules = [group.images[split]] if split in group.images else list(group.images.values())
    splits = frozenset(source_class(group.source).splits)
    return splits & {name for rule in rules for name in rule.from_ or ()} or splits


def _by_digest(
    archive: Archive, part: ArchivePart, group: Group, progress: Progress | None
) -> dict[tuple[str | None, bytes], list[str]]:
    """Return the paths of a part's images by the class of their folder and their digest."""
    lossless = source_class(group.source).lossless
    paths: dict[tuple[str | None, bytes], list[str]] = defaultdict(list)
    with (progress or Silent()).task(f"reading {part.folder}", len(part.images)) as task:
        for path, class_id in part.images.items():
            paths[class_id, _digest(archive, path, lossless)].append(path)
            task.advance()
    return paths


def _digest(archive: Archive, path: str, lossless: bool) -> bytes:
    where = printable(archive.base / path)
    try:
        data = read_image(archive.base / path, archive.root)
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror or error}", where=where) from error
    if lossless:
        return digest_pixels(np.asarray(decode_bytes(data, where=where), np.uint8))
    if (reason := check_bytes(data)) is not None:
        raise DataError(reason, where=where, hint="unpack it again")
    return digest_file(data)


def _entry(split: str, group: Group, class_id: str, image_id: str) -> ListEntry:
    return ListEntry(
        split, group.name, source=group.source, class_id=class_id, image_id=image_id, role=group.role
    )


def _leave_out(matches: ArchiveMatches, part: ArchivePart, paths: Mapping[str, list[str]]) -> None:
    """Note the images that are left out, by the reason."""
    matches.left_out += [Unidentified(part.folder, reason, sorted(p)) for reason, p in paths.items() if p]
