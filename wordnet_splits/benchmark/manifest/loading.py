"""Reading a manifest from its folder, and comparing its tables with the fingerprints in ``manifest.json``."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.files import FileId, file_id
from wordnet_splits.base.parquet import read_table, schema_of
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.benchmark.manifest.carried import (
    carried_hierarchy,
    carried_problems,
    carried_tables,
    read_carried,
)
from wordnet_splits.benchmark.manifest.metadata import GroupRow, ManifestData, PartRow, check_data
from wordnet_splits.benchmark.manifest.parts import Manifest, Part, part_path, write_manifest
from wordnet_splits.benchmark.manifest.tables import (
    IMAGE_SCHEMA,
    ImagePrints,
    check_classes,
    check_images,
    classes_fingerprint,
    evaluation_fingerprint,
    explanation_fingerprint,
    images_fingerprint,
    part_fingerprints,
)
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.catalog.inventory import inventory_splits, load_inventory

Check = Literal["all", "classes", "none"]
"""Comparison with the fingerprints when a manifest is read."""
MAX_READS = 5
"""Most times that a manifest is read again because a build has replaced it meanwhile."""
T = TypeVar("T")


def read_manifest(folder: Path, *, check: Check = "none") -> Manifest:
    """Read the manifest in a folder.

    Parameters
    ----------
    check : ``"all"`` recomputes all fingerprints and counts in ``manifest.json``, now and when a table that
        has changed since is read (1.3 million rows take about two seconds, once per process); ``"classes"``
        recomputes the fingerprint of the classes and leaves the image tables unread; ``"none"`` compares
        nothing (`altered` does).

    Raises
    ------
    ManifestError : a file is absent or malformed, or a table was altered.
    """
    if check == "none":
        return _read(folder)
    return while_steady(folder, partial(_read_and_check, folder, check))


def read_declarations(folder: Path) -> dict[str, Declaration]:
    """Return the datasets that the manifest in a folder carries, without reading its tables."""
    return read_carried(folder, [row.name for row in _read_data(folder).fingerprints.sources])


def _read_data(folder: Path) -> ManifestData:
    return check_data(read_json(folder / "manifest.json", error=ManifestError), f"{folder}/manifest.json")


def _read(folder: Path) -> Manifest:
    identity, data = manifest_id(folder), _read_data(folder)
    path = folder / "classes.parquet"
    classes = check_classes(read_table(path, error=ManifestError), str(path))
    rows = {(row.split, row.group): row for row in data.groups}
    parts = [(row.split, row.group) for row in data.fingerprints.images]
    images: dict[Part, Callable[[], pa.Table]] = {
        p: partial(_images, rows[p], part_path(folder, p)) for p in parts
    }
    carried, pair_tables = data.fingerprints.sources, data.fingerprints.pair_tables
    declarations = read_carried(folder, [row.name for row in carried]) if carried else {}
    tables = carried_tables(folder, pair_tables) if pair_tables else {}
    hierarchy = carried_hierarchy(folder, data)
    return Manifest(data, classes, images, folder, declarations, tables, hierarchy, identity)


def _read_and_check(folder: Path, check: Check) -> Manifest:
    manifest = _read(folder)
    if check == "classes":
        if manifest.data.fingerprints.classes != classes_fingerprint(manifest.classes):
            raise _altered("the class table is not the one that was fingerprinted", str(folder))
        for part in manifest.parts:
            _file_id(part_path(folder, part))
    for problem in altered(manifest) if check == "all" else altered_sources(manifest):
        raise _altered(problem, str(folder))
    for row in manifest.data.fingerprints.images if check == "all" else ():
        part = (row.split, row.group)
        manifest.parts[part] = partial(
            _checked, manifest.parts[part], row, part_path(folder, part), folder, manifest.identity
        )
    return manifest


def manifest_id(folder: Path) -> FileId | None:
    """Return the identity of a folder's ``manifest.json``, which each build changes; None without one."""
    try:
        return file_id(folder / "manifest.json")
    except OSError:
        return None


def read_again(manifest: Manifest) -> Manifest:
    """Return a manifest, read again from its folder if a build has replaced it since it was read."""
    folder = manifest.folder
    if folder is None or manifest_id(folder) == manifest.identity:
        return manifest
    return read_manifest(folder)


def while_steady(
    folder: Path, read: Callable[[], T], *, suspect: Callable[[T], bool] = lambda result: False
) -> T:
    """Call ``read`` on a manifest's folder, again if a build replaced it meanwhile, and return the result.

    Parameters
    ----------
    suspect : whether a result may come from tables of two builds; a ManifestError always may.

    Raises
    ------
    ManifestError : raised by ``read`` about unchanged files; or the folder is replaced each time.
    """
    for _ in range(MAX_READS):
        before = manifest_id(folder)
        try:
            result = read()
        except ManifestError:
            if manifest_id(folder) == before:
                raise
        else:
            if not suspect(result) or manifest_id(folder) == before:
                return result
    raise ManifestError("is being replaced all the time", where=str(folder), hint="wait until the builds end")


def altered(manifest: Manifest) -> list[str]:
    """Return a sentence for each fingerprint or count that the tables and files contradict."""
    stored = manifest.data.fingerprints
    has_files = bool(stored.sources or stored.pair_tables or stored.hierarchy)
    carried = altered_sources(manifest) if has_files and manifest.folder is not None else []
    parts, whole = _prints(manifest)
    compared: list[tuple[str, object, object]] = [
        ("classes", stored.classes, classes_fingerprint(manifest.classes)),
        ("explanation", stored.explanation, explanation_fingerprint(manifest.classes)),
        ("evaluation", stored.evaluation, _evaluation(manifest.data)),
    ]
    counts = {(row.split, row.group): row.actual for row in manifest.groups}
    for row, computed in zip(stored.images, parts, strict=True):
        label = f"{row.split}/{row.group}"
        compared += [
            (f"actual {label}", counts[row.split, row.group], computed.rows),
            (f"rows {label}", row.rows, computed.rows),
            (f"images {label}", row.images, computed.images),
            (f"pixels {label}", row.pixels, computed.pixels),
        ]
    if not manifest.data.awaiting:
        compared += [
            ("images in all", stored.images_in_all, whole.images),
            ("pixels in all", stored.pixels_in_all, whole.pixels),
        ]
    return carried + [
        f"{subject}: the table gives {computed}, manifest.json says {recorded}"
        for subject, recorded, computed in compared
        if recorded != computed
    ]


def _evaluation(data: ManifestData) -> str:
    return evaluation_fingerprint(data.recipe.as_dict(), (row.model_dump() for row in data.groups))


def altered_sources(manifest: Manifest) -> list[str]:
    """Return a sentence for each problem of the files that a manifest carries."""
    folder, prints = manifest.folder or Path(), manifest.data.fingerprints
    return carried_problems(folder, prints, manifest.declarations, manifest.classes)


_prints_of_file: dict[FileId, ImagePrints] = {}
_prints_of_files: dict[tuple[FileId, ...], ImagePrints] = {}
"""Fingerprints recomputed in this process, by the identity of the files."""


def _prints(manifest: Manifest) -> tuple[list[ImagePrints], ImagePrints]:
    if manifest.folder is None:
        return part_fingerprints(read_table() for read_table in manifest.parts.values())
    files = tuple(_file_id(part_path(manifest.folder, part)) for part in manifest.parts)
    if files not in _prints_of_files:
        parts, _prints_of_files[files] = part_fingerprints(
            read_table() for read_table in manifest.parts.values()
        )
        _prints_of_file.update(zip(files, parts, strict=True))
    return [_prints_of_file[file] for file in files], _prints_of_files[files]


def _file_id(path: Path) -> FileId:
    try:
        return file_id(path)
    except OSError as error:
        raise ManifestError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _images(row: GroupRow, path: Path) -> pa.Table:
    return check_images(with_digests(read_table(path, error=ManifestError), path), row, str(path))


def _checked(
    read_table: Callable[[], pa.Table], row: PartRow, path: Path, folder: Path, identity: FileId | None
) -> pa.Table:
    try:
        file, table = _file_id(path), read_table()
        prints = _prints_of_file.get(file) or images_fingerprint([table])
        if prints != ImagePrints(row.rows, row.images, row.pixels):
            raise _altered("it was altered since it was opened", str(path))
    except ManifestError:
        if manifest_id(folder) == identity:
            raise
        raise ManifestError(
            "was built again since it was opened, and holds other images",
            where=str(folder),
            hint="open it again",
        ) from None
    return table


def _altered(problem: str, where: str) -> ManifestError:
    return ManifestError(problem, where=where, hint="fetch it or build it again")


ENVIRONMENT = "WORDNET_SPLITS_MANIFESTS"
"""Environment variable with the path of a user's folder of manifests."""
CHANGELOG = "CHANGELOG.md"
"""The author's changelog of a frozen manifest."""
LONGEST_NAME = 255
"""Most bytes of a folder's name."""
_VERSIONED = re.compile(r"([a-z0-9][a-z0-9-]*)@v([1-9][0-9]{0,8})")


def shipped_folder() -> Path:
    """Return the folder of the benchmarks that come with the program: the checkout's, or the package's."""
    return next((folder for folder in shipped_folders() if folder.is_dir()), shipped_folders()[0])


def shipped_folders() -> tuple[Path, ...]:
    """Return the folders that may hold the shipped benchmarks, first match first."""
    package = Path(str(files("wordnet_splits")))
    return package.parent / "manifests", package / "_manifests"


def shipped_data(name: str) -> ManifestData | None:
    """Return the ``manifest.json`` of the benchmark of that name that comes with the program."""
    path = shipped_folder() / name.partition("@")[0] / "manifest.json"
    return check_data(read_json(path, error=ManifestError), str(path)) if path.is_file() else None


def manifest_folders(manifests: Path | None = None) -> Iterator[Path]:
    """Yield the folders that may hold manifests, first match first."""
    if manifests is not None:
        yield manifests
        return
    if ENVIRONMENT in os.environ:
        yield Path(os.environ[ENVIRONMENT])
    yield from shipped_folders()


def frozen_folders(manifests: Path | None = None, *, earlier: bool = False) -> dict[str, Path]:
    """Return the folder of each frozen benchmark by its name, sorted.

    Parameters
    ----------
    earlier : include the earlier versions that `freeze` kept, as ``NAME@v1``.
    """
    folders: dict[str, Path] = {}
    for parent in manifest_folders(manifests):
        for file in parent.glob("*/manifest.json"):
            if file.is_file() and (earlier or version_of(file.parent.name) is None):
                folders.setdefault(file.parent.name, file.parent)
    return dict(sorted(folders.items()))


def version_of(name: str) -> int | None:
    """Return the version that a name as ``mine@v1`` has, None for a name without version."""
    match = _VERSIONED.fullmatch(name)
    return int(match[2]) if match else None


def frozen_folder(name: str, manifests: Path | None = None) -> Path | None:
    """Return the folder of a frozen benchmark, or None.

    ``mine@v1`` is the version that `freeze` kept when it froze a later one, or the latest if it is that.
    """
    if not 0 < len(name.encode(errors="replace")) <= LONGEST_NAME:
        return None
    for parent in manifest_folders(manifests):
        if (parent / name / "manifest.json").is_file():
            return parent / name
        latest = parent / name.partition("@")[0]
        if version_of(name) is not None and (latest / "manifest.json").is_file():
            data = check_data(read_json(latest / "manifest.json", error=ManifestError), str(latest))
            if data.version == version_of(name):
                return latest
    return None


def manifest_names(manifests: Path | None = None) -> tuple[str, ...]:
    """Return the names of the frozen benchmarks, sorted."""
    return tuple(frozen_folders(manifests))


DIGESTS = "digests.parquet"
DIGEST_SCHEMA = schema_of("source image_id digest:sha256")


def with_digests(table: pa.Table, path: Path) -> pa.Table:
    """Return the image table read from ``path`` with its digests; an unknown digest is null.

    A table that has the column, or that is not the package's, is returned as it is.
    """
    manifests = path.parents[3]
    packaged = (manifests / DIGESTS).is_file() and {"source", "image_id"} <= set(table.column_names)
    if "digest" in table.column_names or not packaged:
        return table
    sources = table["source"].unique().to_pylist()  # at most one: a group has one source
    ids, digests = packaged_digests(sources[0] if sources else "", manifests)
    column = digests.take(pc.index_in(table["image_id"], ids))
    at = IMAGE_SCHEMA.get_field_index("digest")
    return table.add_column(at, IMAGE_SCHEMA.field(at), column)


@cache
def packaged_digests(source: str, manifests: Path | None) -> tuple[pa.Array, pa.Array]:
    """Return the ids and digests of a source's images in the package, unique ids of the inventories first.

    Parameters
    ----------
    manifests : the folder that holds ``digests.parquet``; None for the inventories alone.
    """
    tables = [*_inventories(source)]
    if manifests is not None:
        every = read_table(manifests / DIGESTS, error=ManifestError)
        tables.append(every.filter(pc.equal(every["source"], source)).select(["image_id", "digest"]))
    whole = pa.concat_tables(tables).combine_chunks()
    return whole["image_id"].combine_chunks(), whole["digest"].combine_chunks()


def _inventories(source: str) -> Iterator[pa.Table]:
    yield DIGEST_SCHEMA.empty_table().select(["image_id", "digest"])
    for split in inventory_splits(source):
        inventory = load_inventory(source, split)
        if inventory is not None:
            yield inventory.select(["image_id", "digest"]).replace_schema_metadata(None)


@cache
def _unpacked(folder: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="wordnet-splits-")


def whole_folder(manifest: Manifest) -> Path:
    """Return a folder with a manifest's files as they are published: its folder, or a temporary copy.

    A manifest of the installed package, whose image tables have no digests, is copied; the copy is removed
    when this process ends.
    """
    folder = manifest.folder
    assert folder is not None
    if folder.parent not in shipped_folders() or not (folder.parent / DIGESTS).is_file():
        return folder
    copy = Path(_unpacked(folder).name) / manifest.name
    if not copy.is_dir():
        write_manifest(manifest, copy.parent)
    return copy
