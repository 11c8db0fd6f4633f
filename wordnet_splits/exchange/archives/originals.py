"""Images of a source by the digest of their pixels, to identify images of an archive without names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from wordnet_splits.base.errors import Problem, SourceError
from wordnet_splits.benchmark.construct.digesting import read_digests
from wordnet_splits.benchmark.construct.population import NO_POSITIONS
from wordnet_splits.datasets.catalog.inventory import inventory_splits, load_inventory
from wordnet_splits.datasets.sources import open_source, source_class
from wordnet_splits.exchange.tasks import ImportOptions

COLUMNS = ("image_id", "class_id", "split")


class Original(NamedTuple):
    """An image of a source."""

    image_id: str
    class_id: str
    split: str


def find_originals(
    name: str, splits: frozenset[str], options: ImportOptions, problems: list[Problem]
) -> Mapping[bytes, list[Original]] | None:
    """Return the images of some splits by digest, in the order of their ids; None if no split is at hand.

    Digests are from inventories or, if these do not have them all, from the images below the source's root.

    Parameters
    ----------
    problems : takes a problem for each image that cannot be read.

    Raises
    ------
    SourceError : the root is not this dataset, or positions in it do not identify images.
    """
    shipped = {
        split: table
        for split in splits & set(inventory_splits(name))
        if (table := load_inventory(name, split)) is not None and table["digest"].null_count == 0
    }
    rooted = source_class(name).rooted
    originals: dict[bytes, list[Original]] = defaultdict(list)
    if rooted and (shipped.keys() == splits or name not in options.roots):
        if not shipped:
            return None
        table = pa.concat_tables(
            [shipped[split].select([*COLUMNS, "digest"]) for split in sorted(shipped)]
        ).sort_by("image_id")
        for *columns, digest in zip(*(table[c].to_pylist() for c in (*COLUMNS, "digest")), strict=True):
            originals[digest].append(Original(*columns))
        return originals
    source = open_source(name, options.roots.get(name))
    if source.order != "published":
        raise SourceError(
            f"no image of {name} can be identified: {NO_POSITIONS}",
            where=str(source.root),
            hint="fetch the publisher's files",
        )
    found = {row[0]: Original(*row) for row in source.rows(splits)}
    classes = {image_id: original.class_id for image_id, original in found.items()}
    digests, unreadable = read_digests(source, classes, {}, workers=1, progress=options.progress)
    problems += unreadable
    for image_id in sorted(digests):
        originals[digests[image_id]].append(found[image_id])
    return originals
