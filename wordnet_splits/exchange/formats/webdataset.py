"""WebDataset shards: ``<split>/<group>-<number>.tar``; an image, its ``.cls`` and ``.json`` share a key.

The key is a number, because ids may contain dots; the JSON object is the row of the image table with the
digest in hex. The same images give the same bytes: times and owners are not stored.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import replacing
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.datasets.sources.layouts.archives import archive_files
from wordnet_splits.exchange.exporter import DEFAULT_EXTENSION, ExportImage, ExportTask
from wordnet_splits.exchange.formats import (
    ExchangeFormat,
    ImportTask,
    ListEntry,
    entry_of,
    list_files,
    register_format,
    text_row,
)

IMAGES_PER_SHARD: Final = 5_000
"""Largest number of images in a shard; about 500 MB of photographs."""
MAX_OBJECT_BYTES: Final = 1 << 16


@register_format("webdataset")
class WebDataset(ExchangeFormat):
    """Tar files that webdataset reads."""

    about = "WebDataset shards: an image, its .cls and its .json share a key"
    has_images = True

    def write(self, task: ExportTask, folder: Path) -> None:
        """Write the shards of each part."""
        for (split, group), table in task.tables():
            numbered = enumerate(task.read_images((split, group), table))
            for shard, images in groupby(numbered, key=lambda item: item[0] // IMAGES_PER_SHARD):
                path = folder / split / f"{group}-{shard:06d}.tar"
                with replacing(path) as part, tarfile.open(part, "w", format=tarfile.USTAR_FORMAT) as file:
                    for number, image in images:
                        _add(file, number, image)

    def read(self, task: ImportTask) -> Iterator[ListEntry]:
        """Yield the JSON objects of the shards as entries; images are not read."""
        for shard in list_files(task.path, ".tar", recursive=True):
            for name, data in archive_files(shard, lambda name: name.endswith(".json"), MAX_OBJECT_BYTES):
                where = f"{shard}:{name}"
                try:
                    text = data.decode()
                except UnicodeDecodeError:
                    raise DataError("is not UTF-8 text", where=where) from None
                yield entry_of(parse_json(text, where=where), task.split, where)


def _add(shard: tarfile.TarFile, number: int, image: ExportImage) -> None:
    row = text_row(image.row)
    members: dict[str, bytes] = {
        image.extension or DEFAULT_EXTENSION: image.data,
        ".cls": str(row["label"]).encode(),
        ".json": json.dumps(row, ensure_ascii=False, sort_keys=True).encode(),
    }
    for extension, data in members.items():
        info = tarfile.TarInfo(f"{number:09d}{extension}")
        info.size = len(data)
        shard.addfile(info, io.BytesIO(data))
