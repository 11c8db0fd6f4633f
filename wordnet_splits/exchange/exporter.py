"""Export of benchmarks in other projects' formats, into a new folder and in one step."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import OutputError, SplitsError, unknown
from wordnet_splits.base.files import locked, replacing_folder
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.benchmark.images.raw_images import (
    awaiting_parts,
    check_selection,
    is_selected,
    open_sources,
)
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.carried import write_carried
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.exchange.formats.registry import FORMATS
from wordnet_splits.exchange.paths import PATHS
from wordnet_splits.exchange.results import Exported
from wordnet_splits.exchange.tasks import ExportTask


def export_benchmark(
    benchmark: Manifest | str | Path,
    format: str,
    out: Path | str,
    *,
    roots: Roots | None = None,
    copies: bool = False,
    paths: str = "tree",
    links: bool = False,
    ids_only: bool = False,
    allow_missing: bool = False,
    groups: Collection[str] = (),
    splits: Collection[str] = (),
    manifests: Path | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write a benchmark, or some groups and splits, in another project's format.

    Parameters
    ----------
    benchmark : name or folder of a manifest, or the manifest.
    format : one of `format_names`.
    out : folder to create; it must not exist, or be empty.
    roots : folder of each source, for formats with images; in lists, they decide the extensions of paths.
    copies : copy files instead of linking to them (``imagefolder``, ``links``).
    paths : in lists of paths, ``disk`` for ``<source>/<path below its root>`` as stored; ``tree`` for the
        paths of ``imagefolder``, or the other project's own if these are known.
    links : also write ``images/`` next to lists of paths, with a link at each path, or a file for an image
        without a file of its own.
    ids_only : write no images (``hub``).
    allow_missing : leave out images missing from a root, or whose source has no root, instead of raising.
    groups, splits : write only these; all when empty.

    Raises
    ------
    UnknownNameError : no such benchmark, format, source, group or split.
    OutputError : ``out`` is not empty, or cannot be written.
    SourceError, MissingImageError : images are missing, without ``allow_missing``.
    """
    exchange_format = FORMATS[format]()
    if paths not in PATHS:
        raise unknown("kind of paths", paths, PATHS)
    if not exchange_format.paths and (links or paths != "tree"):
        lists = [name for name, kind in FORMATS.entries().items() if kind.paths]
        hint = f"leave out paths and links, or export as {' or '.join(lists)}"
        raise SplitsError("is not a list of paths", where=format, hint=hint)
    manifest = load_manifest(benchmark, manifests)
    if groups or splits:
        manifest = _part(manifest, groups, splits)
    out = Path(out).absolute()
    pictures = (exchange_format.pictures and not ids_only) or links or paths == "disk"
    names = {manifest.source_of(group) for _, group in manifest.parts}
    if not pictures:  # only these roots, so that a list is the same on every machine
        names &= set(roots or {})
    task = ExportTask(
        manifest,
        format,
        open_sources(sorted(names), roots, manifest.declarations),
        copies=copies,
        paths=paths,
        links=links,
        ids_only=ids_only,
        allow_missing=allow_missing,
        progress=progress or Silent(),
    )
    with locked(out, busy="another process exports here", hint="wait for it, or give another --out"):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise OutputError("is there already", where=str(out), hint="give --out a new or empty folder")
        with replacing_folder(out) as folder:
            exchange_format.write(task, folder)
            exported = set(manifest.classes["source"].to_pylist())
            carried = [row for row in manifest.data.fingerprints.sources if row.name in exported]
            write_carried(manifest.declarations, carried, folder)
    awaiting = awaiting_parts(manifest, groups, splits)
    return Exported(manifest.name, format, out, task.images, task.problems, awaiting)


def _part(manifest: Manifest, groups: Collection[str], splits: Collection[str]) -> Manifest:
    """Return a manifest of some groups and splits: their classes, and their images if these are known."""
    check_selection(manifest, groups, splits)
    parts = {(row.split, row.group) for row in manifest.groups if row.split != "classes"}
    if not any(is_selected(part, groups, splits) for part in parts):
        reason = f"{', '.join(groups) or 'it'} has no {' and no '.join(splits) or 'images'}"
        raise SplitsError(reason, where=manifest.name, hint="`wordnet-splits list` shows what there is")
    in_groups = pc.is_in(manifest.classes["group"], pa.array(list(groups), pa.string()))
    classes = manifest.classes.filter(in_groups) if groups else manifest.classes
    selected = {part: read for part, read in manifest.parts.items() if is_selected(part, groups, splits)}
    return replace(manifest, classes=classes, parts=selected)
