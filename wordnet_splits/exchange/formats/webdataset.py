"""WebDataset shards: ``<split>/<group>-<number>.tar``; a picture, its ``.cls`` and ``.json`` have one key.

The key is a number, so that no id is cut at a dot; the JSON object is the row of the image table, the digest
in hex. The same images give the same bytes: no times, no owners.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import replacing
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.exchange.entries import ImportTask, ListEntry
from wordnet_splits.exchange.outgoing import Export, Picture
from wordnet_splits.exchange.rows import entry_of, plain_row
from wordnet_splits.sources.layouts.tars import archive_files

SHARD: Final = 5_000
"""Pictures of a shard: 500 MB of photographs."""
LARGEST_OBJECT: Final = 1 << 16


class WebDataset:
    """Tar files that webdataset reads."""

    about = "WebDataset shards: a picture, .cls and .json an image"
    pictures = True

    def write(self, export: Export, folder: Path) -> None:
        """Write the shards of each part."""
        for (split, group), table in export.tables():
            pictures = export.pictures((split, group), table)
            number = 0
            while chunk := list(islice(pictures, 1)):
                path = folder / split / f"{group}-{number // SHARD:06d}.tar"
                with replacing(path) as part, tarfile.open(part, "w", format=tarfile.USTAR_FORMAT) as shard:
                    while chunk:
                        _add(shard, number, chunk[0])
                        number += 1
                        chunk = [] if number % SHARD == 0 else list(islice(pictures, 1))

    def read(self, reading: ImportTask) -> Iterator[ListEntry]:
        """Yield what the JSON objects of the shards say; pictures are not read."""
        path = reading.path
        shards = sorted(path.rglob("*.tar")) if path.is_dir() else [path]
        if not shards:
            raise DataError("no file *.tar here", where=str(path), hint="give a folder of shards, or one")
        for shard in shards:
            for name, data in archive_files(shard, lambda name: name.endswith(".json"), LARGEST_OBJECT):
                where = f"{shard}:{name}"
                try:
                    text = data.decode()
                except UnicodeDecodeError:
                    raise DataError("is not UTF-8 text", where=where) from None
                yield entry_of(parse_json(text, where=where), reading, where)


def _add(shard: tarfile.TarFile, number: int, picture: Picture) -> None:
    row = plain_row(picture.row)
    members: dict[str, bytes] = {
        picture.extension or ".jpg": picture.data,
        ".cls": str(row["label"]).encode(),
        ".json": json.dumps(row, ensure_ascii=False, sort_keys=True).encode(),
    }
    for extension, data in members.items():
        info = tarfile.TarInfo(f"{number:09d}{extension}")
        info.size = len(data)
        shard.addfile(info, io.BytesIO(data))
