"""Import of benchmarks: image lists become a recipe, which is built."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.progress import Progress
from wordnet_splits.benchmark.manifest.carried import carried_names, read_carried
from wordnet_splits.benchmark.manifest.tables import ROLES, SPLITS
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog.declarations import Declaration, Sources
from wordnet_splits.datasets.sources import source_names
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.exchange.archives.kim_archive import import_archive
from wordnet_splits.exchange.entries import slug
from wordnet_splits.exchange.formats.registry import ARCHIVE, FORMATS
from wordnet_splits.exchange.paths import DiskPaths
from wordnet_splits.exchange.recipe_from_lists import benchmark_from_lists
from wordnet_splits.exchange.resolve import Resolved, resolve, unmatched_message
from wordnet_splits.exchange.results import Imported, count_overlap
from wordnet_splits.exchange.tasks import ImportOptions, ImportTask


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
            raise SplitsError("has splits, roles and sources of its own", where=format, hint=hint)
        imported = import_archive(path, out, name=name, options=options)
        assert imported.like is not None
        assert imported.manifest is not None
        overlap = count_overlap(load_manifest(imported.like), imported.manifest)
        return replace(imported, in_common=overlap)
    exchange_format = FORMATS.find(format, near=get_close_matches(format, [ARCHIVE]))()
    datasets = Sources.of(declarations_beside(path))
    options = replace(options, datasets=datasets)
    _check(split, roles or {}, [*(sources or {}).values(), *([source] if source else [])], datasets)
    entries = exchange_format.read(ImportTask(path, split, datasets))
    disk_paths = DiskPaths(options.roots, format, datasets)
    resolved = resolve(entries, format, sources or {}, datasets, fallback=source, disk_paths=disk_paths)
    if resolved.unmatched and not allow_missing:
        hint = "say --source GROUP=NAME, or leave them out with --allow-missing"
        raise DataError(unmatched_message(resolved), where=str(path), hint=hint)
    if not resolved.images:
        raise DataError("lists no image", where=str(path))
    _check_groups({*(roles or {}), *(sources or {})}, resolved)
    imported = benchmark_from_lists(resolved.images, path, out, name=name, roles=roles or {}, options=options)
    return replace(imported, unmatched=[*resolved.unmatched, *imported.unmatched])


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


def _check_groups(named: Collection[str], resolved: Resolved) -> None:
    """Raise UnknownNameError for a group that has a role or source and no image."""
    known = {entry.group for entry in (*resolved.images, *resolved.unmatched)}
    known |= {slug(f"{entry.group}-{entry.source}") for entry in resolved.images} | set(map(slug, known))
    for name in sorted(set(named) - known):
        raise unknown("group", name, sorted(known))
