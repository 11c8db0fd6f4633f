"""Freeze the ids and digests of a user's dataset, so that draws from it stay the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.base.errors import DataError, MissingImageError, OutputError, SourceError
from wordnet_splits.base.files import locked
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.parquet import read_table, write_table
from wordnet_splits.base.progress import Progress
from wordnet_splits.benchmark.construct.digesting import read_digests
from wordnet_splits.benchmark.construct.population import count_difference
from wordnet_splits.benchmark.recipe import declared_by
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.datasets.catalog.inventory import INVENTORY_SCHEMA, MULTILABEL_SCHEMA
from wordnet_splits.datasets.sources import check_source, open_source
from wordnet_splits.datasets.sources.roots import Roots, resolve_root


@dataclass(frozen=True)
class MadeInventory(Jsonable):
    """A frozen inventory: images by split, and whether the file existed already with the ``same`` rows."""

    source: str
    out: Path
    images: Mapping[str, int]
    unexpected: Mapping[str, int]
    same: bool


def make_inventory(
    name: str,
    *,
    roots: Roots | None = None,
    declared: str | Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> MadeInventory:
    """Write the inventory of a declared dataset: all image ids by split, with digests.

    Parameters
    ----------
    roots : folder of its files; by default from the environment or ``roots.toml``.
    declared : file that declares the dataset if the data's folder does not: a ``dataset.toml``, or a recipe
        with ``[[source]]``.
    workers : processes that read images.

    Raises
    ------
    UnknownNameError : the source does not exist.
    SourceError : it is shipped, has no root, or differs from the counts of its catalog.
    MissingImageError : an image cannot be opened; inventories are always complete.
    OutputError : another inventory is frozen there, or it cannot be written.
    """
    datasets = Sources.of(declared_by(declared))
    root = resolve_root(name, roots, datasets)
    check_source(name, root, datasets)
    declaration = datasets.find(name)
    if declaration is None:
        raise SourceError(
            f"{name} is not a dataset of your own: the ids of shipped sources that can be known are shipped"
        )
    source = open_source(name, root, datasets)
    rows = sorted((s, i, c) for batch in source.scan() for i, c, s in zip(*_columns(batch), strict=True))
    catalog = source.catalog()
    for split in source.splits:
        counts = Counter(class_id for of_split, _, class_id in rows if of_split == split)
        if (difference := count_difference(catalog, split, counts)) is not None:
            raise SourceError(
                difference,
                where=str(source.root),
                hint="count anew: wordnet-splits catalog make "
                f"--root {source.root} --out {declaration.catalog}",
            )
    out = declaration.inventory_file
    with locked(out, busy="another `inventory make` is writing here"):
        classes = {image_id: class_id for _, image_id, class_id in rows}
        if len(classes) < len(rows):
            raise DataError("one image id is in two splits", where=str(source.root), hint="rename one")
        digests, problems = read_digests(source, classes, {}, workers=workers, progress=progress)
        if problems:
            problem = problems[0]
            raise MissingImageError(
                f"{len(problems):,} of {len(rows):,} images of {name} cannot be frozen, such as "
                f"{problem.image_id}: {problem.detail}",
                where=str(source.root),
                hint="repair or remove them, then `catalog make` again",
            )
        columns: list[list[Any]] = [
            [image_id for _, image_id, _ in rows],
            [class_id for _, _, class_id in rows],
            [split for split, _, _ in rows],
            [digests[image_id] for _, image_id, _ in rows],
        ]
        if source.multilabel:
            columns.append([source.extra_classes.get(image_id, ()) for _, image_id, _ in rows])
        table = pa.table(columns, schema=MULTILABEL_SCHEMA if source.multilabel else INVENTORY_SCHEMA)
        same = out.exists()
        if same and not read_table(out).equals(table):
            raise OutputError(
                "another inventory is frozen here",
                where=str(out),
                hint="remove it to freeze anew",
            )
        if not same:
            write_table(table, out)
    images = Counter(split for split, _, _ in rows)
    return MadeInventory(name, out, dict(images), source.unexpected, same)


def _columns(batch: pa.RecordBatch) -> list[list[str]]:
    return [batch.column(name).to_pylist() for name in ("image_id", "class_id", "split")]
