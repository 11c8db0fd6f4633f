"""Import of benchmarks: exports of this package are restored, other lists become a recipe.

Of an export the recipe decides the classes, the lists decide the images.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, Problem, SplitsError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.progress import Progress
from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.exchange.archives.facets import import_facets, merged_groups
from wordnet_splits.exchange.archives.kim_archive import import_archive
from wordnet_splits.exchange.entries import ListEntry, slug
from wordnet_splits.exchange.formats.registry import ARCHIVES, get_format
from wordnet_splits.exchange.paths import DiskPaths
from wordnet_splits.exchange.recipe_from_lists import benchmark_from_lists
from wordnet_splits.exchange.resolve import Resolved, resolve, unmatched_message
from wordnet_splits.exchange.results import Imported, count_overlap
from wordnet_splits.exchange.sidecar import Sidecar, read_export_declarations, read_sidecar
from wordnet_splits.exchange.tasks import ExportTask, ImportTask
from wordnet_splits.finding import load_manifest
from wordnet_splits.making import BuildOptions
from wordnet_splits.making.assemble import Rules, assemble, decide
from wordnet_splits.making.images import Selection, select_images
from wordnet_splits.making.run import missing_error, read_pixels
from wordnet_splits.manifest import Manifest, Part, read_manifest, write_manifest
from wordnet_splits.manifest.tables import CUT_ORDER, ROLES, SPLITS
from wordnet_splits.packed.reading import no_root
from wordnet_splits.recipe import Group
from wordnet_splits.sources import Source, open_source, source_class, source_names
from wordnet_splits.sources.roots import Roots
from wordnet_splits.taxonomy import load


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
        group_sources = {} if sidecar is None else {g.name: g.source for g in sidecar.full_recipe(path).group}
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
        _check_groups({*(roles or {}), *(sources or {})}, resolved)
        if sidecar is not None:
            return _restore(sidecar, path, resolved, format, out, options, disk_paths.sources)
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
    path: Path,
    resolved: Resolved,
    format_name: str,
    out: Path,
    options: BuildOptions,
    sources: Mapping[str, Source],
) -> Imported:
    manifest, problems = restore(sidecar, path, resolved.images, options)
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


def _check_groups(named: Collection[str], resolved: Resolved) -> None:
    """Raise UnknownNameError for a group that has a role or source and no image."""
    known = {entry.group for entry in (*resolved.images, *resolved.unmatched)}
    known |= {slug(f"{entry.group}-{entry.source}") for entry in resolved.images} | set(map(slug, known))
    for name in sorted(set(named) - known):
        raise unknown("group", name, sorted(known))


Images = dict[str, dict[str, bytes | None]]
"""Class id -> image id -> digest."""


def restore(
    sidecar: Sidecar, path: Path, images: Sequence[ListEntry], options: BuildOptions
) -> tuple[Manifest, list[Problem]]:
    """Return the manifest of an export, and the images missing from a root.

    Raises
    ------
    DataError : the class of an image is not in its group.
    MissingImageError : images are missing from a root, without ``allow_missing``.
    """
    recipe = sidecar.full_recipe(path)
    taxonomy = load()
    rules = decide(recipe, sidecar.seed, taxonomy)
    if _lists_classes(images):
        selections = select_images(recipe, sidecar.seed, rules.membership.groups, {})
    else:
        selections = _selections(sidecar, rules, _by_part(rules, images))
    sources = {n: open_source(n, r) for n, r in sorted(options.roots.items()) if n in recipe.sources}
    problems = read_pixels(selections, sources, options)
    if problems and not options.allow_missing:
        raise missing_error(problems, selections, sources, recipe.name)
    left_out = [Problem(**row.model_dump()) for row in sidecar.missing]
    resampled = "@seed=" in sidecar.benchmark
    manifest, _ = assemble(
        rules, selections, taxonomy, missing=[*left_out, *problems], resampled=resampled, strict=False
    )
    return manifest, problems


def differences(
    sidecar: Sidecar,
    images: Sequence[ListEntry],
    manifest: Manifest,
    format_name: str,
    sources: Mapping[str, Source],
) -> list[str]:
    """Return the differences from the exported benchmark as sentences; unknown pixels are not compared.

    ``sources`` are those whose paths on disk the lists have.
    """
    data = manifest.data
    restored = {(row.split, row.group): row for row in manifest.data.fingerprints.images}
    exported = {(row.split, row.group): row for row in sidecar.parts}
    sentences = [f"{split}/{group} is not there" for split, group in exported.keys() - restored.keys()]
    sentences += [f"{split}/{group} is one too many" for split, group in restored.keys() - exported.keys()]
    for part in sorted(restored.keys() & exported.keys()):
        now, earlier = restored[part], exported[part]
        if now.images != earlier.images:
            counts = f"{now.rows:,} images, others than the {earlier.rows:,} exported"
            sentences.append(f"{part[0]}/{part[1]} has {counts}")
        elif None not in (now.pixels, earlier.pixels) and now.pixels != earlier.pixels:
            sentences.append(f"{part[0]}/{part[1]} has other pixels")
    if (sidecar.benchmark, sidecar.version, sidecar.seed) != (data.name, data.version, data.seed):
        sentences.append(
            f"is {data.name} version {data.version}, not the {printable(sidecar.benchmark)} exported"
        )
    if sidecar.format != format_name:
        sentences.append(f"was exported as {sidecar.format}")
    elif count := _count_altered(images, _export_task(sidecar, manifest, format_name, sources)):
        sentences.append(f"{count:,} images have another path, label, role, group or view than was exported")
    if data.fingerprints.classes != sidecar.classes:
        sentences.append("the rules give other classes")
    if _lists_classes(images):
        listed: dict[str, set[str]] = defaultdict(set)
        for entry in images:
            listed[entry.group].add(entry.class_id or "")
        for group in {row.group for row in manifest.groups} | listed.keys():
            at = pc.equal(manifest.classes["group"], group)
            if listed[group] != set(manifest.classes.filter(at)["class_id"].to_pylist()):
                sentences.append(f"{group} has other classes")
    return sorted(sentences)


def _export_task(
    sidecar: Sidecar, manifest: Manifest, format_name: str, sources: Mapping[str, Source]
) -> ExportTask:
    on_disk = sidecar.paths == "disk"
    return ExportTask(
        manifest, format_name, dict(sources) if on_disk else {}, paths=sidecar.paths, links=on_disk
    )


def _count_altered(images: Sequence[ListEntry], task: ExportTask) -> int:
    """Return the number of entries that an export of the restored benchmark would not write."""
    declared = {_written_values(entry) for entry in images if entry.label is not None}
    for (split, _), table in task.tables():
        for row in task.rows(table):
            entry = ListEntry(split, row["group"], "", task.label(row))
            declared -= {_written_values(entry._replace(path=path)) for path in task.possible_paths(row)}
            columns = {name: row[name] for name in ("source", "class_id", "image_id", "role", "view")}
            declared.discard(_written_values(entry._replace(path="", **columns)))
    return len(declared)


def _written_values(entry: ListEntry) -> tuple[object, ...]:
    """Return the values that must be as exported; lists of paths need not tell the group."""
    if entry.path:
        return entry.split, entry.path, entry.label
    return entry._replace(digest=None)


def _lists_classes(images: Sequence[ListEntry]) -> bool:
    """Return whether a format lists classes without images, which the recipe then draws."""
    return bool(images) and not images[0].image_id


def _by_part(rules: Rules, images: Sequence[ListEntry]) -> dict[Part, Images]:
    """Group images by (split, group); the class decides the group if the format does not tell it."""
    groups = {g.name: g for g in rules.recipe.group}
    members = {name: frozenset(classes) for name, classes in rules.membership.groups.items()}
    images_by_part: dict[Part, Images] = {}
    for entry in images:
        class_id, image_id = entry.class_id or "", entry.image_id or ""
        matching = [
            g
            for g in ([groups[entry.group]] if entry.group in groups else groups.values())
            if g.source == entry.source and class_id in members[g.name] and entry.split in g.images
        ]
        if not matching:
            where = f"{printable(entry.group)} {entry.split}"
            raise DataError(f"class {class_id!r} of {entry.source} is in no group of the recipe", where=where)
        part = images_by_part.setdefault((entry.split, matching[0].name), {})
        part.setdefault(class_id, {})[image_id] = entry.digest
    return images_by_part


def _selections(sidecar: Sidecar, rules: Rules, images: dict[Part, Images]) -> list[Selection]:
    """Return a selection for every split of every group: the exported images, or those still awaited."""
    exported = {(row.split, row.group) for row in sidecar.parts}
    drawn_parts: dict[Part, Selection] = {}
    if any((s, g.name) not in exported for g in rules.recipe.group for s in g.images):
        selected = select_images(rules.recipe, sidecar.seed, rules.membership.groups, {})
        drawn_parts = {(s.split, s.group.name): s for s in selected}
    local = sidecar.benchmark.endswith("@local")
    selections = []
    for group in rules.recipe.group:
        for split in (s for s in CUT_ORDER if s in group.images):
            part = (split, group.name)
            selection = drawn_parts.get(part)
            if part in exported or selection is None:
                expected = None if selection is None else selection.expected
                selection = _selection(group, split, images.get(part, {}), expected, local)
            selections.append(selection)
    return selections


def _selection(group: Group, split: str, images: Images, expected: int | None, local: bool) -> Selection:
    listed_digests = {i: d for ids in images.values() for i, d in ids.items() if d is not None}
    ids = {class_id: list(of_class) for class_id, of_class in images.items()}
    image_ids = {i for of_class in ids.values() for i in of_class}
    count = len(image_ids)
    digests = {**_inventory_digests(group.source, image_ids), **listed_digests}
    return Selection(group, split, count if expected is None else expected, ids, digests, local=local)


def _inventory_digests(source: str, image_ids: set[str]) -> dict[str, bytes]:
    """Return the digests of some images that inventories have."""
    digests: dict[str, bytes] = {}
    for split in inventory_splits(source):
        table = load_inventory(source, split)
        if table is None or table["digest"].null_count:
            continue
        pairs = zip(table["image_id"].to_pylist(), table["digest"].to_pylist(), strict=True)
        digests.update((i, d) for i, d in pairs if i in image_ids)
    return digests
