"""Import of benchmarks: image lists become a recipe, which is built."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.progress import Progress
from wordnet_splits.benchmark.manifest.carried import carried_names, read_carried
from wordnet_splits.benchmark.manifest.tables import ROLES, SPLITS
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import catalog_names, load_catalog
from wordnet_splits.datasets.catalog.declarations import LOCAL, Declaration, Sources
from wordnet_splits.datasets.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.datasets.sources import source_class, source_names
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.exchange.formats import ARCHIVE, FORMATS, MAX_ENTRIES, ImportTask, ListEntry, slug
from wordnet_splits.exchange.kim_archive import import_archive
from wordnet_splits.exchange.paths import DiskPaths, find_image, parse_tree_path
from wordnet_splits.exchange.recipe_from_lists import (
    Imported,
    ImportOptions,
    benchmark_from_lists,
    count_overlap,
)

MAX_EXAMPLES = 3
MAX_PATH_LENGTH = 4096
"""Longest path in characters, which is also the limit of Linux."""


def import_benchmark(
    format: str,
    path: Path | str,
    out: Path | str,
    *,
    name: str | None = None,
    split: str = "test",
    roles: Mapping[str, str] | None = None,
    sources: Mapping[str, str] | None = None,
    source: str | None = None,
    roots: Roots | None = None,
    allow_missing: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Read a benchmark in another project's format and write it as a manifest.

    Parameters
    ----------
    format : one of `format_names`, or ``kim-archive``.
    path : a file or folder of that format, or the authors' folder.
    out : folder to write ``<name>/``, ``<name>.toml`` and ``lists/`` into.
    name : name of the benchmark; by default the name of the file or folder.
    split : split of a list without a split in its name.
    roles : role of groups by name, for lists without roles; OOD groups are ``far`` by default.
    sources, source : source of groups by name, and of all other groups, for paths without a source.
    roots : folder of each source whose pixels are to be digested, or whose paths on disk are listed.
    allow_missing : leave out entries without a known image, and images missing from a root.

    Raises
    ------
    UnknownNameError : no such format, role, split or source.
    DataError : a malformed file, or entries without a known image.
    RecipeError : the lists do not make a benchmark.
    """
    path, out = Path(path), Path(out)
    options = ImportOptions(roots or {}, allow_missing, progress)
    if format == ARCHIVE:
        if roles or sources or source or split != "test":
            hint = "leave out --split, --role and --source"
            raise SplitsError("defines its own splits, roles and sources", where=format, hint=hint)
        imported = import_archive(path, out, name=name, options=options)
        assert imported.like is not None
        assert imported.manifest is not None
        overlap = count_overlap(load_manifest(imported.like), imported.manifest)
        return replace(imported, in_common=overlap)
    exchange_format = FORMATS.find(format, near=get_close_matches(format, [ARCHIVE]))()
    datasets = Sources.of(declarations_beside(path))
    options = replace(options, datasets=datasets)
    _check(split, roles or {}, [*(sources or {}).values(), *([source] if source else [])], datasets)
    resolver = _Resolver(format, sources or {}, source, options)
    images, unmatched = resolver.resolve(exchange_format.read(ImportTask(path, split, datasets)))
    if unmatched and not allow_missing:
        count = f"{len(unmatched):,} of {len(images) + len(unmatched):,} entries"
        examples = ", ".join(repr(entry.name) for entry in unmatched[:MAX_EXAMPLES])
        groups = ", ".join(sorted({entry.group for entry in unmatched})[:MAX_EXAMPLES])
        reason = f"cannot match {count} with images of known sources, such as {examples} ({groups})"
        hint = "give --source GROUP=NAME, or leave them out with --allow-missing"
        raise DataError(reason, where=str(path), hint=hint)
    if not images:
        raise DataError("contains no image", where=str(path))
    known = {entry.group for entry in (*images, *unmatched)}
    known |= {slug(f"{entry.group}-{entry.source}") for entry in images} | set(map(slug, known))
    for group in sorted({*(roles or {}), *(sources or {})} - known):
        raise unknown("group", group, sorted(known))
    imported = benchmark_from_lists(images, path, out, name=name, roles=roles or {}, options=options)
    return replace(imported, unmatched=[*unmatched, *imported.unmatched])


def declarations_beside(path: Path) -> dict[str, Declaration]:
    """Return the users' datasets that the export in a folder, or of a file, carries. Raises ManifestError."""
    folder = path if path.is_dir() else path.parent
    return read_carried(folder, carried_names(folder))


def _check(split: str, roles: Mapping[str, str], sources: list[str], datasets: Sources) -> None:
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    for role in roles.values():
        if role not in ROLES or role == "excluded":
            raise unknown("role", role, [r for r in ROLES if r != "excluded"])
    for name in sources:
        if name not in source_names(datasets):
            raise unknown("source", name, source_names(datasets))


class _Resolver:
    """Finder of the images of known sources that the entries of lists refer to."""

    def __init__(
        self, format_name: str, sources: Mapping[str, str], fallback: str | None, options: ImportOptions
    ) -> None:
        self._format, self._sources, self._fallback = format_name, sources, fallback
        self._disk_paths = DiskPaths(options.roots, format_name, options.datasets)
        names = source_names(options.datasets)
        self._classes_of = cache(lambda s: ImageClasses(s, options.datasets) if s in names else None)

    def resolve(self, entries: Iterable[ListEntry]) -> tuple[list[ListEntry], list[ListEntry]]:
        """Return the entries with source, class_id and image_id, and the entries without a known image."""
        images: list[ListEntry] = []
        unmatched: list[ListEntry] = []
        listed_keys: set[tuple[str, str, str, str]] = set()
        for number, entry in enumerate(entries):
            if number >= MAX_ENTRIES:
                raise DataError(f"more than {MAX_ENTRIES:,} images", hint="import it in parts")
            if (letters := max(len(entry.path), len(entry.image_id or ""))) > MAX_PATH_LENGTH:
                reason = f"a path must have at most {MAX_PATH_LENGTH:,} letters, got {letters:,}"
                raise DataError(reason, where=f"{entry.group} {entry.split}")
            image = self._image(entry)
            if image is None:
                unmatched.append(entry)
                continue
            label = image.image_id or f"class {image.class_id}"
            key = (image.split, image.group, image.source or "", label)
            if key in listed_keys:
                reason = f"image {label!r} of {image.source} is listed twice"
                raise DataError(reason, where=f"{image.group} {image.split}", hint="remove one")
            listed_keys.add(key)
            images.append(image)
        return images, unmatched

    def _image(self, entry: ListEntry) -> ListEntry | None:
        """Return the entry with source, image_id and class_id, None without a known image."""
        image_id, folder, source = entry.image_id, entry.class_id, entry.source
        if image_id is None:
            if on_disk := self._disk_paths.find(entry.path, self._sources.get(entry.group, self._fallback)):
                source, image_id = on_disk
            elif official := find_image(self._format, entry.path):
                source, image_id, folder = official
            elif tree_path := parse_tree_path(entry.path):
                split, group, folder, image_id = tree_path
                entry = entry._replace(split=split or entry.split, group=group or entry.group)
        source = source or self._sources.get(entry.group, self._fallback)
        if source is None or image_id is None or (classes := self._classes_of(source)) is None:
            return None
        class_id = classes.of(image_id, folder) if image_id else entry.class_id
        if class_id is None or class_id not in classes.catalog:
            return None
        return entry._replace(source=source, image_id=image_id, class_id=sys.intern(class_id))


class ImageClasses:
    """Classes of a source's images by image id; catalog and inventories are loaded once."""

    def __init__(self, source: str, datasets: Sources = LOCAL) -> None:
        self.catalog = load_catalog(source, datasets)
        self._class = source_class(source, datasets)
        is_shipped = source in catalog_names()
        self._inventory = _shipped_classes(source) if is_shipped else _read_classes(source, datasets)
        listed = inventory_splits(source, datasets)
        self._complete = bool(self._inventory) and set(listed) == set(self.catalog.splits)

    def of(self, image_id: str, folder: str | None = None) -> str | None:
        """Return the class of an image, None if the source cannot have an image of that id.

        ``folder`` : the class according to a list, which must agree; it decides if neither an inventory nor
        the id determines the class.
        """
        class_id = self._inventory.get(image_id)
        if class_id is None and self._complete:
            return None
        if class_id is None:
            try:
                class_id = self._class.class_of(image_id)
            except KeyError:
                return None
        if class_id is None:
            # the longest: SUN397 has the classes hospital and hospital_room
            starts = (image_id[:at] for at in range(len(image_id) - 1, 0, -1) if image_id[at] in "/_")
            class_id = next((start for start in starts if start in self.catalog), folder)
        if class_id is None or class_id not in self.catalog:
            return None
        return class_id if folder in (None, "", class_id, class_id.replace("/", "-")) else None


def _read_classes(source: str, datasets: Sources = LOCAL) -> dict[str, str]:
    """Return the class of every image in the inventories of a source."""
    classes: dict[str, str] = {}
    for split in inventory_splits(source, datasets):
        table = load_inventory(source, split, datasets)
        assert table is not None
        names = [sys.intern(name) for name in table["class_id"].to_pylist()]
        classes.update(zip(table["image_id"].to_pylist(), names, strict=True))
    return classes


_shipped_classes = cache(_read_classes)
