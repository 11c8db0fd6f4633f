"""Restore the manifest of an export: the recipe decides the classes, the lists decide the images."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, Problem
from wordnet_splits.base.names import printable
from wordnet_splits.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.exchange.entries import ListEntry
from wordnet_splits.exchange.sidecar import Sidecar
from wordnet_splits.exchange.tasks import ExportTask
from wordnet_splits.making import BuildOptions
from wordnet_splits.making.assemble import Rules, assemble, decide
from wordnet_splits.making.images import Selection, select_images
from wordnet_splits.making.run import missing_error, read_pixels
from wordnet_splits.manifest import Manifest, Part
from wordnet_splits.manifest.tables import CUT_ORDER
from wordnet_splits.recipe import Group
from wordnet_splits.sources import Source, open_source
from wordnet_splits.taxonomy import load

Images = dict[str, dict[str, bytes | None]]
"""Class id -> image id -> digest."""


def restore(
    sidecar: Sidecar, images: Sequence[ListEntry], options: BuildOptions
) -> tuple[Manifest, list[Problem]]:
    """Return the manifest of an export, and the images missing from a root.

    Raises
    ------
    DataError : the class of an image is not in its group.
    MissingImageError : images are missing from a root, without ``allow_missing``.
    """
    recipe = sidecar.full_recipe()
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
