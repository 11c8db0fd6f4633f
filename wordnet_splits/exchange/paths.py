"""Where other projects keep the images of a source: ``data/exchange/paths.tsv``, read both ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.catalog import load_catalog

TABLE = Path(__file__).parent.parent / "data" / "exchange" / "paths.tsv"
_FIELD = re.compile(r"\{(\w+)\}")
_PATTERNS = {
    "class": "[^/]+",
    "folder": "[^/]+",
    "split": "[a-z]+",
    "number": r"\d{6}",
    "index": r"\d+",
    "position": r"\d+",
    "above": ".+",
    "name": "[^/]+",
}


class Located(NamedTuple):
    """The image that a path names; ``folder`` is the class as the path writes it, "" where it does not."""

    source: str
    image_id: str
    folder: str


@dataclass(frozen=True)
class Place:
    """A row of the table: how ``format`` writes the paths of some images of ``source``."""

    format: str
    source: str
    path: str
    id: str

    @cached_property
    def beginning(self) -> str:
        """What all its paths begin with."""
        return self.path.partition("{")[0]

    def write(self, image_id: str, class_id: str) -> str | None:
        """Return the path of an image, None where the row is not of its kind."""
        if not re.fullmatch(self.id, image_id):
            return None
        above, _, name = image_id.rpartition("/")
        fields = {"id": image_id, "class": class_id, "folder": class_id.replace("/", "-")}
        fields |= {"above": above, "name": name}
        if "{index}" in self.path:
            fields["index"] = str(load_catalog(self.source)[class_id].index)
        if "{split}" in self.path:
            split, _, position = image_id.partition("/")
            fields |= {"split": split, "position": position, "number": f"{int(position) + 1:06d}"}
        return self.path.format(**fields)

    def read(self, path: str) -> Located | None:
        """Return the image that a path names, None where the row is not of its kind."""
        match = _pattern(self.path, self.id).fullmatch(path)
        if match is None:
            return None
        fields = match.groupdict()
        position = fields.get("position") or str(int(fields.get("number") or 1) - 1)
        if "name" in fields:
            image_id = f"{fields['above']}/{fields['name']}"
        else:
            image_id = fields.get("id") or f"{fields['split']}/{position}"
        if not re.fullmatch(self.id, image_id):
            return None
        return Located(self.source, image_id, fields.get("class") or fields.get("folder") or "")


def official_path(format_name: str, source: str, image_id: str, class_id: str) -> str | None:
    """Return where a project keeps an image of ours, None where nobody has said."""
    places = (p for p in _places() if (p.format, p.source) == (format_name, source))
    return next((path for p in places if (path := p.write(image_id, class_id))), None)


def located(format_name: str, path: str) -> Located | None:
    """Return the image of ours that a project's path names, None where it names none."""
    places = (p for p in _places() if p.format == format_name and path.startswith(p.beginning))
    return next((image for p in places if (image := p.read(path))), None)


@cache
def _pattern(path: str, image_id: str) -> re.Pattern[str]:
    kinds = {**_PATTERNS, "id": image_id}
    pieces = _FIELD.split(path)  # text and names of fields in turn
    named_pieces = [f"(?P<{p}>{kinds[p]})" if n % 2 else re.escape(p) for n, p in enumerate(pieces)]
    return re.compile("".join(named_pieces), re.ASCII)


@cache
def _places() -> tuple[Place, ...]:
    return tuple(_read())


def _read() -> Iterator[Place]:
    lines = [line for line in read_text(TABLE).splitlines() if not line.startswith("#")]
    for number, line in enumerate(lines[1:], 2):
        cells = line.split("\t")
        if len(cells) != 4:
            raise DataError(f"row {number} has {len(cells)} cells, not 4", where=str(TABLE))
        yield Place(*cells)
