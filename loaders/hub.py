"""A dataset of ours as one of Hugging Face's (extra ``hub``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from wordnet_splits.base.lazy import need

if TYPE_CHECKING:
    from .dataset import UnknownDetectionSet

COLUMNS = ("image_id", "source", "class_id", "role", "group", "split", "view")


def to_hf(data: UnknownDetectionSet) -> Any:
    """Return a ``datasets.Dataset``: image, label (-1 where an image has none), and the rows' columns.

    Images are written to the library's cache one by one: original files as they are, pixels as PNG.

    Raises
    ------
    MissingPackageError : ``datasets`` is not installed.
    """
    datasets = need("datasets", "hub", where="to_hf")
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=data.classes),
            **{name: datasets.Value("string") for name in COLUMNS},
        }
    )
    split = str(data.table["split"][0].as_py()) if len(data) else "test"
    return datasets.Dataset.from_generator(
        _examples, features=features, gen_kwargs={"data": data}, split=datasets.NamedSplit(split)
    )


def _examples(data: UnknownDetectionSet) -> Iterator[dict[str, Any]]:
    row = 0
    for batch in data.table.select([*COLUMNS, "label"]).to_batches():
        for values in batch.to_pylist():
            content, extension = data.encoded(row)
            path = values["image_id"].replace("/", "_") + extension
            yield {**values, "image": {"bytes": content, "path": path}}
            row += 1
