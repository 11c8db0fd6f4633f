"""Datasets of the Hugging Face Hub: as ``datasets`` saved or cached them, or by name.

The root is a folder of ``save_to_disk``, or one of the cache; or the declaration names a dataset, which is
then read from the cache of ``datasets``, else from the Hub. An id is ``<split>/<position>`` wherever the
rows are read. No script of a dataset is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.untrusted import path_below
from wordnet_splits.sources.layouts.parquet_named import SPLIT_WORDS
from wordnet_splits.sources.own.arrow_table import ArrowTable
from wordnet_splits.sources.own.hub_by_name import cached_copy, received
from wordnet_splits.sources.own.layout import ALL, Image
from wordnet_splits.sources.own.parquet_rows import ParquetTable
from wordnet_splits.sources.own.rows import Rows, Shard, Table

INFO: Final = "dataset_info.json"  # beside the files that it is of
STATE: Final = "state.json"  # of a dataset that was saved
DICT: Final = "dataset_dict.json"  # above the folders of its splits

_ARROW = re.compile(r"(.+?)(?:-(\d{5})-of-(\d{5}))?\.arrow")


class HubRows(Rows):
    """A picture a row of Arrow or Parquet files."""

    about: ClassVar[str] = 'a folder of save_to_disk, or dataset = "ORG/NAME"'

    def images(self, note: Callable[[str], None]) -> Iterator[Image]:
        """Yield every row that has a class."""
        for row in self.rows(note):
            yield Image(f"{row.split}/{row.position}", row.class_id, row.split, row.place)

    def shards(self) -> Sequence[Shard]:
        """Return the files of the folder, or of the dataset that is named."""
        if self.declared.dataset is None:
            return saved(self.root)
        copy = cached_copy(self.declared)
        return received(self.declared) if copy is None else saved(copy)

    def written_names(self, schema: pa.Schema, label: str, path: Path) -> Sequence[str]:
        """Return the names in ``dataset_info.json`` beside an Arrow file, else those in the file.

        This is the order in which `datasets` reads them. Raises SourceError.
        """
        info = path.with_name(INFO)
        features = _field(info, "features") if path.suffix == ".arrow" and info.is_file() else None
        if not isinstance(features, dict) or label not in features:
            return super().written_names(schema, label, path)
        feature = features[label]
        names = feature.get("names") if isinstance(feature, dict) else None
        if names is None:  # the library, too, gives the numbers then
            return ()
        return _texts(names, info)

    def opened(self, path: Path) -> Table:
        """Return a file opened."""
        return ParquetTable(path) if path.suffix == ".parquet" else ArrowTable(path)


def saved(root: Path) -> list[Shard]:
    """Return the files of a folder that ``datasets`` wrote, in the order of their rows.

    Raises
    ------
    SourceError : it did not write the folder, or a file is gone.
    """
    if (root / DICT).is_file():
        splits = _texts(_field(root / DICT, "splits"), root / DICT)
        return [shard for split in splits for shard in _of_state(root, f"{split}/", split)]
    if (root / STATE).is_file():
        return _of_state(root, "", None)
    if (root / INFO).is_file():
        return _of_cache(root)
    raise SourceError(
        f"no {DICT}, {STATE} or {INFO} in the root",
        where=str(root),
        hint='a folder of save_to_disk has them; by name: dataset = "ORG/NAME"; Parquet: layout = "parquet"',
    )


def _of_state(root: Path, folder: str, split: str | None) -> list[Shard]:
    """Return the files that ``state.json`` of a folder lists."""
    path = path_below(root, folder + STATE)
    listed = _field(path, "_data_files")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise SourceError("lists no files", where=str(path), hint="save it again")
    files = [
        path_below(root, folder + name) for name in _texts([one.get("filename") for one in listed], path)
    ]
    if gone := [file for file in files if not file.is_file()]:
        raise SourceError("a file of the dataset is gone", where=str(gone[0]), hint="save it again")
    word = _word(split or _field(path, "_split") or ALL)
    return [Shard(file, word) for file in files]


def _of_cache(root: Path) -> list[Shard]:
    """Return the files ``NAME-SPLIT[-00000-of-00002].arrow`` of the splits that the folder's info names."""
    held = _field(root / INFO, "splits")
    if not isinstance(held, dict) or not held:
        raise SourceError("names no split", where=str(root / INFO), hint="load it again with `datasets`")
    found = sorted(path.name for path in root.glob("*.arrow"))
    shards = []
    for split in held:
        names = [name for name in found if (m := _ARROW.fullmatch(name)) and m[1].endswith(f"-{split}")]
        first = _ARROW.fullmatch(names[0]) if names else None
        if first is None or len(names) != int(first[3] or 1):
            raise SourceError(
                f"{len(names)} files of the split {printable(split)}, not all",
                where=str(root),
                hint="load it again with `datasets`",
            )
        shards += [Shard(path_below(root, name), _word(split)) for name in names]
    return shards


def _field(path: Path, name: str) -> Any:
    held = read_json(path, error=SourceError)
    return held.get(name) if isinstance(held, dict) else None


def _texts(held: Any, path: Path) -> list[str]:
    if not isinstance(held, list) or not held or not all(isinstance(text, str) for text in held):
        raise SourceError("names nothing that is read here", where=str(path), hint="save it again")
    return held


def _word(split: Any) -> str:
    """Return a split as we call it, so that a copy whose files are named otherwise has the same."""
    return SPLIT_WORDS.get(str(split).lower(), str(split))
