"""A table of images: ``labels.csv`` or ``.tsv`` has a path below the root, a class, maybe a split a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Final

from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import csv_rows
from wordnet_splits.base.untrusted import path_below
from wordnet_splits.sources.layouts.walk import entries
from wordnet_splits.sources.own.class_names import class_names, class_of
from wordnet_splits.sources.own.columns import class_column, image_column, split_column
from wordnet_splits.sources.own.layout import ALL, Image, without_extension
from wordnet_splits.sources.own.picture_files import PictureFiles

DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}


class CsvTable(PictureFiles):
    """A picture a row; its id is its path without the extension."""

    about: ClassVar[str] = "a .csv or .tsv of image and class[, split]"

    def images(self, note: Callable[[str], None]) -> Iterator[Image]:
        """Yield the pictures that the table names and the root holds."""
        path = self._table()
        rows = csv_rows(path, delimiter=DELIMITERS[path.suffix.lower()], error=SourceError)
        head = next(rows, [])
        columns = self.declared.columns
        image, class_ = image_column(head, columns, path), class_column(head, columns, path)
        split = split_column(head, columns, path)
        places = [None if name is None else head.index(name) for name in (image, class_, split)]
        names = class_names(self.root)
        for number, cells in enumerate(rows, 2):
            if len(cells) != len(head):
                raise SourceError(f"{len(cells)} cells, not {len(head)}", where=f"{path}, row {number}")
            name, label, of_split = (ALL if at is None else cells[at].strip() for at in places)
            class_id = class_of(label, names, f"{path}, row {number}")
            image_id = without_extension(name)
            if image_id is None or class_id is None or not (path_below(self.root, name)).is_file():
                note(printable(name))
            else:
                yield Image(image_id, class_id, of_split, (name,))

    def _table(self) -> Path:
        if self.declared.images is not None:
            path = path_below(self.root, self.declared.images)
            if path.suffix.lower() not in DELIMITERS:
                raise SourceError("is no .csv or .tsv", where=str(path), hint="see images in dataset.toml")
            return path
        found = sorted(entry.name for entry in entries(self.root, self.root) if entry.name.endswith(".csv"))
        if len(found) != 1:
            some = f"{len(found)} .csv files: {', '.join(found[:3])}" if found else "no .csv file"
            hint = 'say which in dataset.toml, as in images = "labels.csv"'
            raise SourceError(f"{some} in the root", where=str(self.root), hint=hint)
        return self.root / found[0]
