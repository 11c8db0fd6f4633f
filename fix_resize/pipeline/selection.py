"""What to build: which images of which sources, under which names.

A selection comes from a manifest (its frozen rows, or a draw where the ids await a copy of the source) or
from a folder. It is one table in one order, so that shards are the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fix_resize.pipeline.draws import Draw, draw_group
from fix_resize.pipeline.image_folder import ImageFolder
from wordnet_splits.base.errors import DataError, SourceError, SplitsError, unknown
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.progress import Progress
from wordnet_splits.finding import load_manifest
from wordnet_splits.making.images import Shortfall
from wordnet_splits.manifest import Manifest, fingerprint
from wordnet_splits.manifest.tables import SPLITS
from wordnet_splits.recipe import Group, Recipe, load_recipe
from wordnet_splits.sources import Source, open_source, root_variable, source_class
from wordnet_splits.sources.roots import Roots
from wordnet_splits.sources.stamps import Stamps, stamps

SELECTION_SCHEMA: Final = schema_of("source image_id class_id group split label:int32 digest:sha256 path")
"""``digest`` is of the source's image, null where not known beforehand; ``path`` names the output."""

FOLDER_SPLIT: Final = "images"
"""Split of a folder: `datasets` reserves the word ``all``."""

Identify = Literal["stat", "digest"]
"""How a changed source image is noticed: by size and time of its file, or by reading it."""

ORDER: Final = ("split", "group", "source", "class_id", "image_id")


class NamedSet(NamedTuple):
    """A set with a name of its own for the command line: a group of a benchmark."""

    benchmark: str
    group: str
    source: str


NAMED: Final = {
    "lsun": NamedSet("unknown-cifar", "lsun", "lsun"),
    "tiny-imagenet": NamedSet("unknown-cifar", "tin158", "imagenet1k"),
}
"""LSUN-FIX and TinyImageNet158-FIX of Kim et al."""


_UNSAFE: Final = r"(^|/)(\.|/|$)|\\|\x00"
"""Empty parts of a path, parts that begin with a dot, and separators of other systems."""


@dataclass
class Worklist:
    """Images to build.

    Attributes
    ----------
    name : what is built, with ``@local`` where it was drawn from an incomplete or unknown root.
    table : `SELECTION_SCHEMA`, sorted by `ORDER`.
    sources : the opened source of each group.
    drawn : groups drawn from a scan of their root, of which nothing can be missing.
    views : the groups' views, raw or names of resize specs.
    population : how many images each class of a local draw was drawn from, by group.
    """

    name: str
    table: pa.Table
    sources: dict[str, Source]
    drawn: frozenset[str] = frozenset()
    views: frozenset[str] = frozenset()
    shortfalls: list[Shortfall] = field(default_factory=list)
    population: dict[str, dict[str, int]] = field(default_factory=dict)
    unexpected: dict[str, dict[str, int]] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over what is to be built (`fingerprint_of_images`), held by a root or not."""
        return fingerprint_of_images(self.table)

    def stamps(self, identify: Identify, progress: Progress) -> Stamps:
        """Return a number for each row, (n,) uint64, that changes with its source image.

        0 where the digest of the image is known beforehand, and stands in the shard's key itself.

        Parameters
        ----------
        identify : ``stat`` looks at size and time of change of files, ``digest`` reads every image.
        """
        groups, digests = (self.table[name].combine_chunks() for name in ("group", "digest"))
        found = np.zeros(len(groups), np.uint64)
        by_root: dict[Path, list[str]] = {}
        for group, source in self.sources.items():
            if source.root is not None:
                by_root.setdefault(source.root, []).append(group)
        for root, names in by_root.items():
            wanted = pc.and_(pc.is_in(groups, value_set=pa.array(names)), digests.is_null())
            rows = np.flatnonzero(wanted.to_numpy(zero_copy_only=False))
            if not len(rows):
                continue
            ids = self.table["image_id"].take(pa.array(rows)).combine_chunks()
            if identify == "stat":
                found[rows] = stamps(root, ids)
                continue
            with progress.task(f"reading {self.name}", len(rows)) as task:
                for row, group, image_id in zip(
                    rows.tolist(), groups.take(pa.array(rows)).to_pylist(), ids.to_pylist(), strict=True
                ):
                    found[row] = _stamp(self.sources[group], image_id)
                    task.advance()
        return found

    def held(self) -> npt.NDArray[np.bool_]:
        """Return for each row whether its root holds it, as far as a scan of names shows."""
        groups = self.table["group"].combine_chunks()
        held = np.zeros(len(groups), bool)
        for group, source in self.sources.items():
            rows = np.flatnonzero(pc.equal(groups, group).to_numpy(zero_copy_only=False))
            if not source.rooted or group in self.drawn:
                held[rows] = True
                continue
            ids = self.table["image_id"].take(pa.array(rows)).combine_chunks()
            for batch in source.scan():
                found = pc.index_in(batch.column("image_id"), value_set=ids).drop_null().to_numpy()
                held[rows[found]] = True
        return held


def _stamp(source: Source, image_id: str) -> int:
    """Return the first 8 bytes of an image's digest; 0 where it cannot be read: its shard will say why."""
    try:
        return int.from_bytes(source.digest(source.read([image_id])[0])[:8])
    except SourceError:
        return 0


def fingerprint_of_images(table: pa.Table) -> str:
    """Return SHA-256 over which images a table in `ORDER` holds, row by row."""
    state = hashlib.sha256()
    for batch in table.select(sorted(ORDER)).to_batches(max_chunksize=fingerprint.BATCH_ROWS):
        state.update("".join(map(fingerprint.row_line, batch.to_pylist())).encode())
    return state.hexdigest()


def select_folder(root: Path) -> Worklist:
    """Select every image of a folder; see `image_folder.ImageFolder` for names and classes.

    Raises
    ------
    SourceError : the folder is absent, cannot be read, or holds no image.
    """
    source = ImageFolder.open(root)
    batches = list(source.scan())
    if not batches:
        raise SourceError("holds no image file", where=str(root), hint="give a folder that holds images")
    scanned = pa.Table.from_batches(batches)
    n = len(scanned)
    paths = pc.binary_join_element_wise(scanned["image_id"], ".png", "")
    columns = {
        **{c: scanned[c] for c in scanned.column_names},
        "source": pa.repeat(pa.scalar(source.name), n),
        "group": pa.repeat(pa.scalar(source.name), n),
        "split": pa.repeat(pa.scalar(FOLDER_SPLIT), n),
        "label": pa.repeat(pa.scalar(-1, pa.int32()), n),
        "digest": pa.nulls(n, pa.binary(32)),
        "path": paths,
    }
    unexpected = {source.name: dict(source.unexpected)} if source.unexpected else {}
    drawn = frozenset({source.name})
    return Worklist("folder", _sorted(columns), {source.name: source}, drawn, unexpected=unexpected)


def select_named(name: str, roots: Roots, **options: Any) -> Worklist:
    """Select a set of `NAMED`; options as of `select_manifest`."""
    if name not in NAMED:
        raise unknown("set", name, NAMED)
    chosen = NAMED[name]
    selection = select_manifest(chosen.benchmark, roots, groups=[chosen.group], **options)
    selection.name = selection.name.replace(chosen.benchmark, name, 1)
    return selection


def select_manifest(
    benchmark: str | Path,
    roots: Roots,
    *,
    groups: Collection[str] = (),
    splits: Collection[str] = (),
    local: bool = False,
    per_class: int | None = None,
    allow_missing: bool = False,
) -> Worklist:
    """Select groups of a manifest.

    Parameters
    ----------
    benchmark : a manifest's name or folder.
    roots : folder of each source.
    groups, splits : which to build; by default the groups that the manifest reads through a resize.
    local : draw awaited images from what a root holds, where that is not known to be the whole source.
    per_class : awaited images to draw of each class, in place of the recipe's number.
    allow_missing : draw what is there where a class holds fewer images than wanted.

    Raises
    ------
    UnknownNameError : no such manifest, group or split.
    SplitsError : no group to build, a root is needed, or a draw cannot be made.
    """
    manifest = load_manifest(benchmark)
    recipe = load_recipe(manifest)
    chosen = _chosen_groups(manifest, recipe, groups)
    for split in splits:
        if split not in SPLITS:
            raise unknown("split", split, SPLITS, where=manifest.name)
    selection = Worklist(manifest.name, SELECTION_SCHEMA.empty_table(), {})
    tables = []
    for group in chosen:
        wanted = [s for s in SPLITS if s in group.images and (not splits or s in splits)]
        if not wanted:
            continue
        source = selection.sources[group.name] = _open(group, roots)
        tables += [manifest.parts[s, group.name]() for s in wanted if (s, group.name) in manifest.parts]
        awaited = [s for s in wanted if (s, group.name) not in manifest.parts]
        if awaited:
            drawn = draw_group(
                manifest,
                group,
                source,
                splits=awaited,
                local=local,
                per_class=per_class,
                allow_short=allow_missing,
            )
            tables.append(_drawn_table(manifest, group, drawn))
            _note(selection, group, drawn, whole=awaited == wanted)
        selection.views |= {group.view}
        if source.unexpected:
            selection.unexpected[group.source] = dict(source.unexpected)
    if not tables:
        raise SplitsError(f"no group to build has split {' or '.join(splits)}", where=manifest.name)
    columns = [c for c in SELECTION_SCHEMA.names if c != "path"]
    rows = pa.concat_tables([table.select(columns) for table in tables])
    if len({g.name for g in chosen if g.name in selection.sources}) == 1:
        folders = rows["split"]
    else:
        folders = pc.binary_join_element_wise(rows["group"], rows["split"], "/")
    named = {**{c: rows[c] for c in columns}, "path": _paths(folders, rows)}
    selection.table = _sorted(named)
    return selection


def _chosen_groups(manifest: Manifest, recipe: Recipe, names: Collection[str]) -> list[Group]:
    known = [g.name for g in recipe.group]
    for name in names:
        if name not in known:
            raise unknown("group", name, known, where=manifest.name)
    chosen = [g for g in recipe.group if g.name in names or (not names and g.view != "raw")]
    if not chosen:
        raise SplitsError(
            "none of its groups is read through a resize, so name the groups to build",
            where=manifest.name,
            hint=f"--group {' or '.join(known)}",
        )
    return chosen


def _open(group: Group, roots: Roots) -> Source:
    if not source_class(group.source).rooted:
        noise: dict[str, Any] = (
            {} if group.noise is None else {"shape": group.noise.shape, "seed": group.noise.seed}
        )
        return open_source(group.source, **noise)
    if group.source not in roots:
        raise SourceError(
            f"group {group.name} needs the images of {group.source}",
            where=group.source,
            hint=f"give --root {group.source}=DIR, or set {root_variable(group.source)}",
        )
    return open_source(group.source, roots[group.source])


def _note(selection: Worklist, group: Group, drawn: Draw, *, whole: bool) -> None:
    if whole:
        selection.drawn |= {group.name}
    selection.shortfalls += drawn.shortfalls
    if drawn.local:
        selection.population[group.name] = dict(drawn.population)
        selection.name = selection.name.removesuffix("@local") + "@local"


def _drawn_table(manifest: Manifest, group: Group, drawn: Draw) -> pa.Table:
    classes = manifest.classes.select(["class_id", "group", "label"]).to_pylist()
    labels = {c["class_id"]: c["label"] for c in classes if c["group"] == group.name}
    parts = [(s, c, ids) for s, images in drawn.images.items() for c, ids in images.items()]
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


def _paths(folders: pa.ChunkedArray, rows: pa.Table) -> pa.ChunkedArray:
    """Name each output ``<folder>/<class>/<last part of the id>.png``; the whole id where parts clash."""
    homes = pc.binary_join_element_wise(folders, rows["class_id"], "/")
    last = pc.replace_substring_regex(rows["image_id"], "^.*/", "")
    whole = pc.replace_substring(rows["image_id"], "/", "-")
    short = pc.binary_join_element_wise(homes, last, "/")
    clashing = pc.unique(homes.filter(pc.is_in(short, value_set=_twice(short))))
    named = pc.if_else(pc.is_in(homes, value_set=clashing), whole, last)
    return pc.binary_join_element_wise(homes, pc.binary_join_element_wise(named, ".png", ""), "/")


def _twice(names: pa.ChunkedArray) -> pa.Array:
    """Return the names that occur more than once."""
    counts = pc.value_counts(names)
    return counts.field("values").filter(pc.greater(counts.field("counts"), 1))


def _sorted(columns: Mapping[str, Any]) -> pa.Table:
    table = pa.table({name: columns[name] for name in SELECTION_SCHEMA.names}, schema=SELECTION_SCHEMA)
    _check_paths(table["path"])
    return table.sort_by([(name, "ascending") for name in ORDER])


def _check_paths(paths: pa.ChunkedArray) -> None:
    """Refuse names that would escape the output folder, be hidden in it, or clash."""
    unsafe = paths.filter(pc.match_substring_regex(paths, _UNSAFE))
    if len(unsafe):
        raise DataError("an image's id or class cannot be the name of a file", where=repr(unsafe[0].as_py()))
    if len(twice := _twice(paths)):
        raise DataError("two images would be written to one file", where=twice[0].as_py())
