"""Import of benchmarks: exports of this package are restored, other lists become a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.progress import Progress
from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.exchange.archives.facets import import_facets, merged_groups
from wordnet_splits.exchange.archives.kim_archive import import_archive
from wordnet_splits.exchange.disk_paths import DiskPaths
from wordnet_splits.exchange.formats.registry import ARCHIVES, get_format
from wordnet_splits.exchange.recipe_from_lists import benchmark_from_lists
from wordnet_splits.exchange.resolve import Resolved, resolve, unmatched_message
from wordnet_splits.exchange.restore import differences, restore
from wordnet_splits.exchange.results import Imported, count_overlap
from wordnet_splits.exchange.sidecar import Sidecar, read_export_declarations, read_sidecar
from wordnet_splits.exchange.tasks import ImportTask
from wordnet_splits.finding import load_manifest
from wordnet_splits.making import BuildOptions
from wordnet_splits.manifest import read_manifest, write_manifest
from wordnet_splits.manifest.tables import ROLES, SPLITS
from wordnet_splits.packed.reading import no_root
from wordnet_splits.sources import Source, source_class, source_names
from wordnet_splits.sources.roots import Roots


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
    format : one of `format_names`, or ``kim-archive`` or ``facets``.
    path : a file or folder of that format, or the authors' folder.
    out : folder to write ``<name>/`` into, and ``<name>.toml`` and ``lists/`` for lists of other origin.
    name : name of a benchmark of other origin; by default that of the file or folder.
    split : split of a list whose name does not tell it.
    roles : role of groups by name, for lists that do not tell it; OOD groups are ``far`` by default.
    sources, source : source of groups by name, and of all other groups, for paths that do not tell it.
    roots : folder of each source whose pixels are to be digested.
    allow_missing : leave out entries that name no image of a known source, and images missing from a root.

    Raises
    ------
    UnknownNameError : no such format, role, split or source.
    DataError : a malformed file, or entries that name no image of a known source.
    RecipeError : the lists do not make a benchmark.
    """
    path, out = Path(path), Path(out)
    options = BuildOptions(roots or {}, allow_missing=allow_missing, progress=progress)
    if format in ARCHIVES:
        if roles or sources or source or split != "test":
            hint = "leave out --split, --role and --source"
            raise SplitsError("has splits, roles and sources of its own", where=format, hint=hint)
        return _import_archive(format, path, out, name, options)
    exchange_format = get_format(format, also=ARCHIVES)
    sidecar = read_sidecar(path)
    with using_sources(read_export_declarations(path, sidecar)):
        _check(split, roles or {}, [*(sources or {}).values(), *([source] if source else [])])
        group_sources = {} if sidecar is None else {g.name: g.source for g in sidecar.full_recipe().group}
        disk_paths = DiskPaths(options.roots, format)
        if sidecar is not None and sidecar.paths == "disk":
            for name in sorted({name for name in group_sources.values() if source_class(name).rooted}):
                if name not in options.roots:
                    raise no_root(name, next(g for g, n in group_sources.items() if n == name))
        entries = exchange_format.read(ImportTask(path, sidecar, split, roles or {}))
        resolved = resolve(
            entries, format, {**group_sources, **(sources or {})}, fallback=source, disk_paths=disk_paths
        )
        if resolved.unmatched and not allow_missing:
            hint = "say --source GROUP=NAME, or leave them out with --allow-missing"
            raise DataError(unmatched_message(resolved), where=str(path), hint=hint)
        if not resolved.images:
            raise DataError("lists no image", where=str(path))
        if sidecar is not None:
            return _restore(sidecar, resolved, format, out, options, disk_paths.sources)
        imported = benchmark_from_lists(
            resolved.images, path, out, name=name, roles=roles or {}, options=options
        )
        return replace(imported, unmatched=[*resolved.unmatched, *imported.unmatched])


def _import_archive(
    format_name: str, path: Path, out: Path, name: str | None, options: BuildOptions
) -> Imported:
    if format_name == "kim-archive":
        return _with_overlap(import_archive(path, out, name=name, options=options), {})
    if name is not None:
        raise SplitsError("its benchmarks have names already", where=format_name, hint="leave out --name")
    benchmarks = import_facets(path, out, options=options)
    main, *also = (_with_overlap(imported, merged_groups()) for imported in benchmarks)
    return replace(main, also=also)


def _with_overlap(imported: Imported, merged: Mapping[str, str]) -> Imported:
    """Add the overlap of an imported benchmark with the shipped one that corresponds to it."""
    assert imported.like is not None
    assert imported.manifest is not None
    overlap = count_overlap(load_manifest(imported.like), imported.manifest, merged=merged)
    return replace(imported, in_common=overlap)


def _restore(
    sidecar: Sidecar,
    resolved: Resolved,
    format_name: str,
    out: Path,
    options: BuildOptions,
    sources: Mapping[str, Source],
) -> Imported:
    manifest, problems = restore(sidecar, resolved.images, options)
    folder = out / manifest.name
    with files.locked(folder, busy="another process writes here", hint="wait for it, or give another --out"):
        files.restore(folder)
        write_manifest(manifest, out)
    return Imported(
        manifest.name,
        folder,
        read_manifest(folder),
        expected=sidecar.fingerprint,
        differences=differences(sidecar, resolved.images, manifest, format_name, sources),
        unmatched=resolved.unmatched,
        problems=problems,
    )


def _check(split: str, roles: Mapping[str, str], sources: list[str]) -> None:
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    for role in roles.values():
        if role not in ROLES or role == "excluded":
            raise unknown("role", role, [r for r in ROLES if r != "excluded"])
    for name in sources:
        if name not in source_names():
            raise unknown("source", name, source_names())
