"""Select the images to build, from a manifest or a folder, and name their outputs.

The images of a manifest are its frozen rows, or a draw if their ids depend on a copy of the source. A
selection is a table in a fixed order, so that shards are the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, MissingImageError, SourceError, SplitsError, unknown
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.progress import Progress
from wordnet_splits.benchmark.construct.population import expand
from wordnet_splits.benchmark.construct.selection import Shortfall, select_images
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.tables import BATCH_ROWS, SPLITS, row_line
from wordnet_splits.benchmark.recipe import Group, ImageRule, Recipe, load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources import Source, open_source, root_variable, source_class
from wordnet_splits.datasets.sources.image_set import ImageFolder, Stamps, stamps
from wordnet_splits.datasets.sources.roots import Roots

SELECTION_SCHEMA: Final = schema_of("source image_id class_id group split label:int32 digest:sha256 path")
"""``digest`` identifies the source image, null if unknown before reading; ``path`` locates the output."""

FOLDER_SPLIT: Final = "images"
"""Split of a folder's images (`datasets` reserves the word ``all``)."""

Identify = Literal["stat", "digest"]
"""How to notice a changed source image: by size and time of its file, or by reading it."""

ORDER: Final = ("split", "group", "source", "class_id", "image_id")

_UNSAFE_PATH: Final = r"(^|/)(\.|/|$)|\\|\x00"
"""Empty parts of a path, parts that begin with a dot, and separators of other systems."""


@dataclass
class Selection:
    """Images to build.

    Attributes
    ----------
    name : name of the set, with ``@local`` if it was drawn from a root that may be incomplete.
    table : `SELECTION_SCHEMA`, sorted by `ORDER`.
    sources : the opened source of each group.
    fully_drawn : groups whose images were all drawn from a scan of their root, and therefore exist there.
    views : views of the groups, raw or names of resize specs.
    shortfalls : classes with fewer images than the draw requires.
    population : number of images from which each class of a local draw was drawn, by group.
    unexpected : files with unexpected names, by source.
    """

    name: str
    table: pa.Table
    sources: dict[str, Source]
    fully_drawn: frozenset[str] = frozenset()
    views: frozenset[str] = frozenset()
    shortfalls: list[Shortfall] = field(default_factory=list)
    population: dict[str, dict[str, int]] = field(default_factory=dict)
    unexpected: dict[str, dict[str, int]] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the images to build (`fingerprint_of_images`), available or not."""
        return fingerprint_of_images(self.table)

    def stamps(self, identify: Identify, progress: Progress) -> Stamps:
        """Return a number for each row, (n,) uint64, that changes with its source image.

        It is 0 for images with a known digest, which is part of the shard's key itself.

        Parameters
        ----------
        identify : ``stat`` uses size and time of change of files, ``digest`` reads every image.
        """
        groups, digests = (self.table[name].combine_chunks() for name in ("group", "digest"))
        numbers = np.zeros(len(groups), np.uint64)
        by_root: dict[Path, list[str]] = {}
        for group, source in self.sources.items():
            if source.root is not None:
                by_root.setdefault(source.root, []).append(group)
        for root, names in by_root.items():
            undigested = pc.and_(pc.is_in(groups, value_set=pa.array(names)), digests.is_null())
            rows = np.flatnonzero(undigested.to_numpy(zero_copy_only=False))
            if not len(rows):
                continue
            ids = self.table["image_id"].take(pa.array(rows)).combine_chunks()
            if identify == "stat":
                numbers[rows] = stamps(root, ids)
                continue
            with progress.task(f"reading {self.name}", len(rows)) as task:
                for row, group, image_id in zip(
                    rows.tolist(), groups.take(pa.array(rows)).to_pylist(), ids.to_pylist(), strict=True
                ):
                    numbers[row] = _stamp(self.sources[group], image_id)
                    task.advance()
        return numbers

    def available(self) -> npt.NDArray[np.bool_]:
        """Return for each row whether its root has an image of that name, (n,) bool."""
        groups = self.table["group"].combine_chunks()
        mask = np.zeros(len(groups), bool)
        for group, source in self.sources.items():
            rows = np.flatnonzero(pc.equal(groups, group).to_numpy(zero_copy_only=False))
            if not source.rooted or group in self.fully_drawn:
                mask[rows] = True
                continue
            ids = self.table["image_id"].take(pa.array(rows)).combine_chunks()
            for batch in source.scan():
                indices = pc.index_in(batch.column("image_id"), value_set=ids).drop_null().to_numpy()
                mask[rows[indices]] = True
        return mask


def _stamp(source: Source, image_id: str) -> int:
    """Return the first 8 bytes of an image's digest; 0 if it cannot be read, which its shard reports."""
    try:
        return int.from_bytes(source.digest(source.read([image_id])[0])[:8])
    except SourceError:
        return 0


def fingerprint_of_images(table: pa.Table) -> str:
    """Return SHA-256 over the columns `ORDER` of a table sorted by them, row by row."""
    state = hashlib.sha256()
    for batch in table.select(sorted(ORDER)).to_batches(max_chunksize=BATCH_ROWS):
        state.update("".join(map(row_line, batch.to_pylist())).encode())
    return state.hexdigest()


def select_folder(root: Path) -> Selection:
    """Select every image of a folder; see `ImageFolder` for ids and classes."""
    source = ImageFolder.open_folder(root)
    batches = list(source.scan())
    if not batches:
        raise SourceError("contains no image file", where=str(root), hint="give a folder of images")
    scanned = pa.Table.from_batches(batches)
    n = len(scanned)
    columns = {
        **{c: scanned[c] for c in scanned.column_names},
        "source": pa.repeat(pa.scalar(source.name), n),
        "group": pa.repeat(pa.scalar(source.name), n),
        "split": pa.repeat(pa.scalar(FOLDER_SPLIT), n),
        "label": pa.repeat(pa.scalar(-1, pa.int32()), n),
        "digest": pa.nulls(n, pa.binary(32)),
        "path": pc.binary_join_element_wise(scanned["image_id"], ".png", ""),
    }
    unexpected = {source.name: dict(source.unexpected)} if source.unexpected else {}
    fully_drawn = frozenset({source.name})
    return Selection("folder", _sorted(columns), {source.name: source}, fully_drawn, unexpected=unexpected)


def select_manifest(
    benchmark: str | Path,
    roots: Roots,
    *,
    groups: Collection[str] = (),
    splits: Collection[str] = (),
    local: bool = False,
    per_class: int | None = None,
    allow_missing: bool = False,
) -> Selection:
    """Select groups of a manifest."""
    manifest = load_manifest(benchmark)
    recipe = load_recipe(manifest)
    groups_to_build = _groups_to_build(manifest, recipe, groups)
    for split in splits:
        if split not in SPLITS:
            raise unknown("split", split, SPLITS, where=manifest.name)
    selection = Selection(manifest.name, SELECTION_SCHEMA.empty_table(), {})
    tables = []
    for group in groups_to_build:
        group_splits = [s for s in SPLITS if s in group.images and (not splits or s in splits)]
        if not group_splits:
            continue
        source = selection.sources[group.name] = _open(group, roots)
        tables += [manifest.parts[s, group.name]() for s in group_splits if (s, group.name) in manifest.parts]
        awaited = [s for s in group_splits if (s, group.name) not in manifest.parts]
        if awaited:
            tables.append(
                _draw(
                    selection,
                    manifest,
                    group,
                    awaited,
                    local=local,
                    per_class=per_class,
                    allow_short=allow_missing,
                )
            )
            if awaited == group_splits:
                selection.fully_drawn |= {group.name}
        selection.views |= {group.view}
        if source.unexpected:
            selection.unexpected[group.source] = dict(source.unexpected)
    if not tables:
        raise SplitsError(f"no group to build has split {' or '.join(splits)}", where=manifest.name)
    columns = [c for c in SELECTION_SCHEMA.names if c != "path"]
    rows = pa.concat_tables([table.select(columns) for table in tables])
    if len(selection.sources) == 1:
        folders = rows["split"]
    else:
        folders = pc.binary_join_element_wise(rows["group"], rows["split"], "/")
    selection.table = _sorted({**{c: rows[c] for c in columns}, "path": _paths(folders, rows)})
    return selection


def _groups_to_build(manifest: Manifest, recipe: Recipe, names: Collection[str]) -> list[Group]:
    recipe_groups = [g.name for g in recipe.group]
    for name in names:
        if name not in recipe_groups:
            raise unknown("group", name, recipe_groups, where=manifest.name)
    groups = [g for g in recipe.group if g.name in names or (not names and g.view != "raw")]
    if not groups:
        raise SplitsError(
            "none of its groups has a resize view, so name the groups to build",
            where=manifest.name,
            hint=f"--group {' or '.join(recipe_groups)}",
        )
    return groups


def _open(group: Group, roots: Roots) -> Source:
    if not source_class(group.source).rooted:
        noise: dict[str, Any] = (
            {} if group.noise is None else {"shape": group.noise.shape, "seed": group.noise.seed}
        )
        return open_source(group.source, **noise)
    if group.source not in roots:
        raise SourceError(
            f"group {group.name} requires the images of {group.source}",
            where=group.source,
            hint=f"give --root {group.source}=DIR, or set {root_variable(group.source)}",
        )
    return open_source(group.source, roots[group.source])


def _draw(
    selection: Selection,
    manifest: Manifest,
    group: Group,
    splits: Collection[str],
    *,
    local: bool,
    per_class: int | None,
    allow_short: bool,
) -> pa.Table:
    """Draw the images of a group from its root, as ``wordnet-splits build`` does, and note facts of the draw.

    Parameters
    ----------
    per_class : number of images per class, instead of the recipe's; a smaller number draws a subset of a
        larger draw.
    allow_short : accept classes with too few images, and record them in ``selection.shortfalls``.
    """
    recipe, source = load_recipe(manifest), selection.sources[group.name]
    rules = dict(group.images)
    if per_class is not None:
        count = {"per_class": per_class, "total": None}
        counted = {s: r for s, r in rules.items() if r.per_class is not None or r.total is not None}
        rules |= {s: rule.model_copy(update=count) for s, rule in counted.items()}
    _check_drawable(recipe, group, rules, manifest.name)
    pools = {rules[s].from_ for s in splits}
    # earlier splits of the same pool come first in its order
    drawn_group = group.model_copy(update={"images": {s: r for s, r in rules.items() if r.from_ in pools}})
    group_recipe = recipe.model_copy(update={"group": (drawn_group,)})
    rows = manifest.classes.select(["class_id", "group", "label"]).to_pylist()
    labels = {row["class_id"]: row["label"] for row in rows if row["group"] == group.name}
    all_shortfalls: list[Shortfall] = []
    draws = select_images(
        group_recipe,
        manifest.data.seed,
        {group.name: sorted(labels)},
        {source.name: source},
        local=local,
        shortfalls=all_shortfalls,
    )
    for draw in draws:
        if draw.awaiting is not None:
            raise SourceError(
                draw.awaiting.reason,
                where=str(source.root),
                hint="complete the root"
                if local
                else "--local draws from this root as it is; such a set is called @local and never frozen",
            )
    shortfalls = [s for s in all_shortfalls if s.split in splits]
    if shortfalls and not allow_short:
        required, available = sum(s.wanted for s in shortfalls), sum(s.taken for s in shortfalls)
        example = shortfalls[0]
        raise MissingImageError(
            f"{len(shortfalls)} classes have {available:,} of {required:,} required images, such as "
            f"{example.class_id!r} {example.taken:,} of {example.wanted:,} for {example.split}",
            where=f"{source.name} under {source.root}",
            hint="complete the root, ask for fewer with --per-class, or accept fewer with --allow-missing",
        )
    selection.shortfalls += shortfalls
    if any(draw.local for draw in draws):
        population: Counter[str] = Counter()
        for counts in {rules[draw.split].from_: draw.drawn_from for draw in draws}.values():
            population.update(counts)
        selection.population[group.name] = dict(population)
        selection.name = selection.name.removesuffix("@local") + "@local"
    parts = [(d.split, c, ids) for d in draws if d.split in splits for c, ids in d.images.items()]
    n = sum(len(ids) for _, _, ids in parts)
    columns = {
        "source": pa.repeat(pa.scalar(group.source), n),
        "image_id": pa.array((i for _, _, ids in parts for i in ids), pa.string()),
        "class_id": pa.array((c for _, c, ids in parts for _ in ids), pa.string()),
        "group": pa.repeat(pa.scalar(group.name), n),
        "split": pa.array((s for s, _, ids in parts for _ in ids), pa.string()),
        "label": pa.array((labels[c] for _, c, ids in parts for _ in ids), pa.int32()),
        "digest": pa.nulls(n, pa.binary(32)),
    }
    return pa.table(columns)


def _check_drawable(recipe: Recipe, group: Group, rules: Mapping[str, ImageRule], name: str) -> None:
    """Raise SourceError if the draw depends on lists, other groups or overlapping pools."""
    pools = {rule.from_ for rule in rules.values()}
    splits = [s for pool in pools for s in expand(group.source, pool or (), recipe.datasets)]
    reused = any(g.reuse for g in recipe.group if g.source == group.source)
    if None in pools or reused or len(splits) != len(set(splits)):
        raise SourceError(
            f"the images of group {group.name} depend on lists or on other groups",
            where=name,
            hint=f"run 'wordnet-splits build {recipe.name} --root {group.source}=DIR', "
            f"then 'fix-resize build from-manifest build/{recipe.name}'",
        )


def _paths(folders: pa.ChunkedArray, rows: pa.Table) -> pa.ChunkedArray:
    """Return ``<folder>/<class>/<last part of the id>.png``, with the whole id if last parts clash."""
    class_folders = pc.binary_join_element_wise(folders, rows["class_id"], "/")
    last_parts = pc.replace_substring_regex(rows["image_id"], "^.*/", "")
    whole_ids = pc.replace_substring(rows["image_id"], "/", "-")
    short = pc.binary_join_element_wise(class_folders, last_parts, "/")
    clashing = pc.unique(class_folders.filter(pc.is_in(short, value_set=_repeated(short))))
    stems = pc.if_else(pc.is_in(class_folders, value_set=clashing), whole_ids, last_parts)
    return pc.binary_join_element_wise(class_folders, pc.binary_join_element_wise(stems, ".png", ""), "/")


def _repeated(names: pa.ChunkedArray) -> pa.Array:
    """Return the names that occur more than once."""
    counts = pc.value_counts(names)
    return counts.field("values").filter(pc.greater(counts.field("counts"), 1))


def _sorted(columns: Mapping[str, Any]) -> pa.Table:
    """Return the table of a selection."""
    table = pa.table({name: columns[name] for name in SELECTION_SCHEMA.names}, schema=SELECTION_SCHEMA)
    paths = table["path"]
    unsafe = paths.filter(pc.match_substring_regex(paths, _UNSAFE_PATH))
    if len(unsafe):
        raise DataError("an image's id or class cannot be a file name", where=repr(unsafe[0].as_py()))
    if len(repeated := _repeated(paths)):
        raise DataError("two images would be written to one file", where=repeated[0].as_py())
    return table.sort_by([(name, "ascending") for name in ORDER])
