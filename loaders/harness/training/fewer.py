"""Some of the train images of a benchmark, equally many of each class, by the benchmark's own draw."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.sampling import order_images, share_total
from wordnet_splits.manifest import Manifest


def draw_rows(table: pa.Table, manifest: Manifest, images: int) -> npt.NDArray[np.int64]:
    """Return the rows of ``images`` images whose class has a label, ascending.

    Equally many per class, the rest one each from the classes of smallest hash; within a class, the first in
    the order of the benchmark's draw, a stable hash of ids. So a smaller draw is a subset of a larger one on
    any machine, and a resample has its own.

    Parameters
    ----------
    table : image rows of one split. manifest : provides draw and seed.

    Raises
    ------
    DataError : fewer images than classes, more of a class than there are, or classes of several sources.
    """
    names = ("source", "class_id", "image_id", "label")
    of_class: dict[str, dict[str, int]] = {}
    sources = set()
    for row, (source, class_id, image_id, label) in enumerate(
        zip(*(table[name].to_pylist() for name in names), strict=True)
    ):
        if label >= 0:
            sources.add(source)
            of_class.setdefault(class_id, {})[image_id] = row
    if not sources:
        raise DataError("no class of these train images has a label", where=manifest.name)
    if len(sources) > 1:
        raise DataError(
            f"train images are drawn from one source, and these are of {', '.join(sorted(sources))}",
            where=manifest.name,
            hint="train on all of them",
        )
    if images < len(of_class):
        raise DataError(
            f"{images:,} images of {len(of_class):,} classes leave some class without one",
            where=manifest.name,
            hint=f"take {len(of_class):,} or more",
        )
    draw, seed = manifest.data.recipe.draw or manifest.data.recipe.name, manifest.data.seed
    (source,) = sources
    shares = share_total(images, draw, seed, source, sorted(of_class))
    selected: list[int] = []
    for class_id, count in shares.items():
        rows = of_class[class_id]
        if count > len(rows):
            raise DataError(
                f"{images:,} images are {count:,} of class {class_id!r}, which has {len(rows):,}",
                where=manifest.name,
                hint=f"take {min(map(len, of_class.values())) * len(of_class):,} or fewer, or all",
            )
        selected += [rows[image_id] for image_id in order_images(draw, seed, source, class_id, rows)[:count]]
    return np.sort(np.asarray(selected, np.int64))
