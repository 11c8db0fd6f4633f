"""From another project's format to a manifest: our exports as they were, other lists as a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.files import locked
from wordnet_splits.base.files import restore as put_back
from wordnet_splits.base.progress import Progress
from wordnet_splits.exchange.archives.facets import import_facets
from wordnet_splits.exchange.archives.facets_lists import counterparts
from wordnet_splits.exchange.archives.kim_archive import import_archive
from wordnet_splits.exchange.entries import ImportTask
from wordnet_splits.exchange.formats.registry import ARCHIVES, get_format
from wordnet_splits.exchange.imported import Imported
from wordnet_splits.exchange.lists_as_recipe import own_benchmark
from wordnet_splits.exchange.overlap import in_common
from wordnet_splits.exchange.resolve import refusal, resolve
from wordnet_splits.exchange.restore import differences, restore
from wordnet_splits.exchange.sidecar import read_sidecar
from wordnet_splits.finding import load_manifest
from wordnet_splits.making import BuildOptions
from wordnet_splits.manifest import read_manifest, write_manifest
from wordnet_splits.manifest.tables import ROLES, SPLITS
from wordnet_splits.sources import source_names
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
    out : folder to write ``<name>/`` into; for lists of unknown origin ``<name>.toml`` and ``lists/``, too.
    name : of a benchmark of unknown origin; else that of the file or folder.
    split : of a list whose name does not say it.
    roles : role of groups by name, where the lists do not say it: OOD groups are ``far`` otherwise.
    sources, source : source of groups by name, and of all others, where paths do not say it.
    roots : folder of each source whose pixels are to be digested.
    allow_missing : leave out entries that name no image of a known source, and images that a root lacks.

    Raises
    ------
    UnknownNameError : no such format, role, split or source.
    DataError : a malformed file, or entries that name no image of a known source.
    RecipeError : lists that make no benchmark.
    """
    path, out = Path(path), Path(out)
    options = BuildOptions(roots or {}, allow_missing=allow_missing, progress=progress)
    if format in ARCHIVES:
        if roles or sources or source or split != "test":
            hint = "leave out --split, --role and --source"
            raise SplitsError("says splits, roles and sources itself", where=format, hint=hint)
        if format == "kim-archive":
            return _with_overlap(import_archive(path, out, name=name, options=options), {})
        if name is not None:
            raise SplitsError("its benchmarks have names already", where=format, hint="leave out --name")
        first_benchmark, *further_benchmarks = (
            _with_overlap(i, counterparts()) for i in import_facets(path, out, options=options)
        )
        return replace(first_benchmark, also=further_benchmarks)
    exchange_format = get_format(format, also=ARCHIVES)
    _check(split, roles or {}, {**(sources or {}), "": source} if source else sources or {})
    notes = read_sidecar(path)
    reading = ImportTask(path, notes, split, roles or {})
    group_sources = {g.name: g.source for g in notes.full_recipe().group} if notes is not None else {}
    entries = resolve(
        exchange_format.read(reading), format, {**group_sources, **(sources or {})}, fallback=source
    )
    if entries.unmatched and not allow_missing:
        total = len(entries.images) + len(entries.unmatched)
        hint = "say --source GROUP=NAME, or leave them out with --allow-missing"
        raise DataError(refusal(entries.unmatched, total), where=str(path), hint=hint)
    if not entries.images:
        raise DataError("lists no image", where=str(path))
    if notes is None:
        imported = own_benchmark(entries.images, path, out, name=name, roles=roles or {}, options=options)
        built = imported.build
        return Imported(
            imported.name,
            out / imported.name,
            None if built is None else built.manifest,
            imported.recipe,
            imported.lists,
            unmatched=[*entries.unmatched, *imported.left_out],
            problems=[] if built is None else built.problems,
        )
    manifest, problems = restore(notes, entries.images, options)
    folder = out / manifest.name
    with locked(folder, busy="another process writes here", hint="wait for it, or give another --out"):
        put_back(folder)
        write_manifest(manifest, out)
    return Imported(
        manifest.name,
        folder,
        read_manifest(folder),
        expected=notes.fingerprint,
        differences=differences(notes, entries.images, manifest, format),
        unmatched=entries.unmatched,
        problems=problems,
    )


def _with_overlap(imported: Imported, renamed: Mapping[str, str]) -> Imported:
    """Add how much an imported benchmark shares with its shipped counterpart."""
    assert imported.like is not None
    assert imported.manifest is not None
    counterpart = load_manifest(imported.like)
    return replace(imported, in_common=in_common(counterpart, imported.manifest, merged=renamed))


def _check(split: str, roles: Mapping[str, str], sources: Mapping[str, str | None]) -> None:
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    for role in roles.values():
        if role not in ROLES or role == "excluded":
            raise unknown("role", role, [r for r in ROLES if r != "excluded"])
    for name in sources.values():
        if name not in source_names():
            raise unknown("source", str(name), source_names())
