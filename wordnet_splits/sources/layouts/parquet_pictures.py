"""Pictures in the Hub's Parquet files without file names: one struct of encoded bytes and one label a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as default
from functools import partial
from pathlib import Path

import pyarrow as pa

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.parquet import open_parquet
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.sources.layouts.parquet_files import FETCH, Shards, bytes_at, field
from wordnet_splits.sources.layouts.pictures import Listing, PictureCopy, PositionalPictures, decode_pixels
from wordnet_splits.sources.layouts.shards import find_shards
from wordnet_splits.sources.layouts.walk import bases

LARGEST_SPLIT = 4 << 30  # bytes, unpacked; the largest known split has 1.5 GB

ShardRow = tuple[int, int, int]
"""Shard, row group, row."""


@dataclass(frozen=True)
class HubLayout:
    """How a dataset's Parquet files differ from other datasets'.

    ``images`` and ``label`` are columns, ``configs`` the folders that may hold the files, ``shape`` is the
    (h, w, 3) of every picture.
    """

    images: tuple[str, ...]
    label: str
    configs: tuple[str, ...]
    splits: tuple[str, ...]
    shape: tuple[int, int, int]
    in_config: bool = False
    """Whether the files must be in a folder of ``configs``, because other datasets have the same columns."""
    misspelt: Mapping[str, str] = default(default_factory=dict)
    """Class name in the Hub's files -> the publisher's, where they differ."""

    def find(self, root: Path, class_ids: tuple[str, ...]) -> dict[str, tuple[Path, ...]]:
        """Return the shards of each split; empty if ``root`` has none of this dataset.

        Raises SourceError if there are shards, but none of them can be read.
        """
        for base in bases(root, *self.configs):
            if self.in_config and not set(base.parts) & set(self.configs):
                continue
            shards = {
                split: paths for split, paths in find_shards(base, root).items() if split in self.splits
            }
            if shards and self._fits([path for paths in shards.values() for path in paths], class_ids):
                return shards
        return {}

    def positional(self, source: str, root: Path, class_ids: tuple[str, ...]) -> Iterator[PositionalPictures]:
        """Yield the files as a layout; their order is not the publisher's promise."""
        if self.find(root, class_ids):
            open_copy = partial(ParquetPictures, self, root, class_ids)
            yield PositionalPictures("parquet", source, self.splits, root, open_copy)

    def _fits(self, paths: list[Path], class_ids: tuple[str, ...]) -> bool:
        """Return whether the first readable file has our columns and, if it names its classes, ours."""
        for path in paths:
            try:
                schema = open_parquet(path, error=SourceError).schema_arrow
            except SourceError:
                continue
            names = tuple(self.misspelt.get(name, name) for name in label_names(schema, self.label))
            return self._has_columns(schema) and names in ((), class_ids)
        raise SourceError("cannot be read as Parquet", where=str(paths[0]), hint=FETCH)

    def _has_columns(self, schema: pa.Schema) -> bool:
        types = {field.name: field.type for field in schema}
        images = [types[name] for name in self.images if name in types]
        return (
            self.label in types
            and pa.types.is_integer(types[self.label])
            and any(pa.types.is_struct(image) and image.get_field_index("bytes") >= 0 for image in images)
        )


class ParquetPictures(PictureCopy):
    """The Parquet files of one dataset, whose pictures are identified by pixels or by position."""

    def __init__(self, layout: HubLayout, root: Path, class_ids: tuple[str, ...]) -> None:
        self._layout = layout
        self._class_ids = class_ids
        self._paths = layout.find(root, class_ids)
        self._rows: dict[str, list[ShardRow]] = {}
        self._pictures: dict[str, dict[tuple[int, int], pa.Array]] = {}

    def listing(self, split: str) -> Listing:
        """Return the rows of a split, in the order stored."""
        classes: list[str | None] = []
        rows = self._rows[split] = []
        paths = self._paths.get(split, ())
        shards = Shards(paths) if paths else None
        for shard, group, table in shards.rows(self._layout.label) if shards else ():
            if not pa.types.is_integer(table.column(0).type):
                message = f"its column {self._layout.label} does not hold integers"
                raise SourceError(message, where=str(paths[shard]), hint=FETCH)
            for row, label in enumerate(table.column(0).to_pylist()):
                valid = label is not None and 0 <= label < len(self._class_ids)
                classes.append(self._class_ids[label] if valid else None)
                rows.append((shard, group, row))

        def describe(index: int) -> str:
            problem = "unknown label" if classes[index] is None else "pixels of no known image"
            return f"{paths[rows[index][0]].name}: {problem}"

        return Listing(classes, describe)

    def pixels(self, split: str, index: int) -> Pixels:
        """Return a picture, uint8 (h, w, 3)."""
        shard, group, row = self._rows[split][index]
        if split not in self._pictures:
            self._pictures[split] = self._load(split)
        where = f"{self._paths[split][shard]}, row group {group}, row {row}"
        data = bytes_at(self._pictures[split][shard, group], row, where)
        if data is None:
            raise SourceError("the row has no picture", where=where)
        return decode_pixels(data, where=where, shape=self._layout.shape)

    def _load(self, split: str) -> dict[tuple[int, int], pa.Array]:
        """Return the encoded pictures by shard and row group; they are read in any order."""
        shards = Shards(self._paths[split])
        size = sum(_unpacked_size(path) for path in shards.paths)
        if size > LARGEST_SPLIT:
            raise SourceError(f"{split} would unpack to {size:,} bytes", where=str(shards.paths[0].parent))
        columns = shards.rows(f"{shards.image}.bytes")
        return {(s, g): field(table, "bytes") for s, g, table in columns}


def _unpacked_size(path: Path) -> int:
    metadata = open_parquet(path, error=SourceError).metadata
    return sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))


def label_names(schema: pa.Schema, label: str) -> tuple[str, ...]:
    """Return the class names that ``datasets`` wrote into the file; empty where there are none."""
    written = (schema.metadata or {}).get(b"huggingface")
    if not written:
        return ()
    try:
        about = parse_json(written.decode("utf-8", "replace"), where="huggingface")
        return tuple(str(name) for name in about["info"]["features"][label]["names"])
    except (DataError, KeyError, TypeError):
        return ()
