"""Formats of other projects: base class, registry and the entries of lists; each format has its own file."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.registry import Registry
from wordnet_splits.base.untrusted import MiB
from wordnet_splits.benchmark.manifest.tables import SPLITS
from wordnet_splits.datasets.catalog.declarations import LOCAL, Sources

if TYPE_CHECKING:
    from wordnet_splits.exchange.exporter import ExportTask


MAX_ENTRIES: Final = 20_000_000
"""Largest number of images in one import (ImageNet-21K has 14 million)."""
MAX_LIST_BYTES: Final = 1024 * MiB
"""Largest size of a list file, in bytes; a list of all of ImageNet-1K has 60 MB."""
TEXT_COLUMNS: Final = ("source", "image_id", "class_id", "role", "group", "split", "view", "digest")
"""Columns of the image table that are text in formats with all columns."""


class ListEntry(NamedTuple):
    """An image as a format lists it; None for a field that the format lacks, or has only in ``path``.

    ``path`` is relative to the other project's data folder. ``image_id`` and ``split`` are "" for a class
    listed without images. ``label`` is a class of the format's classifier, negative for OOD images.
    """

    split: str
    group: str
    path: str = ""
    label: int | None = None
    source: str | None = None
    class_id: str | None = None
    image_id: str | None = None
    role: str | None = None
    view: str | None = None
    digest: bytes | None = None

    @property
    def name(self) -> str:
        """The path, image_id or class_id: the first that is known."""
        return self.path or self.image_id or self.class_id or ""


def slug(text: str) -> str:
    """Return a text as a valid name of a group or benchmark.

    >>> slug("Textures_Labelled v2")
    'textures-labelled-v2'
    """
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")[:64].strip("-") or "unnamed"


def split_and_group(stem: str, default: str) -> tuple[str, str]:
    """Return split and group of a file named ``<split>_<group>``, or ``<group>`` alone.

    >>> split_and_group("test_near-200", "val")
    ('test', 'near-200')
    """
    prefix, _, rest = stem.partition("_")
    return (prefix, slug(rest)) if prefix in SPLITS and rest else (default, slug(stem))


def list_files(path: Path, suffix: str, *, recursive: bool = False) -> list[Path]:
    """Return a file, or the files of a folder that end in ``suffix``, sorted.

    Raises DataError without any such file.
    """
    if path.is_dir():
        files = path.rglob(f"*{suffix}") if recursive else path.iterdir()
        paths = sorted(f for f in files if f.name.endswith(suffix) and not f.name.startswith("."))
    else:
        paths = [path] if path.exists() else []
    if not paths:
        reason = f"contains no file *{suffix}" if path.is_dir() else "no such file or folder"
        raise DataError(reason, where=printable(path), hint=f"give a folder of *{suffix}, or one such file")
    return paths


def parse_label(text: str, where: str) -> int:
    """Return a label; DataError unless it is a whole number of at most nine digits."""
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise _not_a_label(text, where)
    return int(text)


def text_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of an image table with its digest in hex, "" if the digest is unknown."""
    digest = row["digest"]
    return {**row, "digest": digest.hex() if digest else ""}


def entry_of(row: object, split: str, where: str) -> ListEntry:
    """Return the entry of a row as `text_row` makes it; only source and image_id are required."""
    if not isinstance(row, dict):
        raise DataError("must be a JSON object", where=where)
    texts = {name: row.get(name) or "" for name in TEXT_COLUMNS}
    for name, value in texts.items():
        if not isinstance(value, str) or (not value and name in ("source", "image_id")):
            raise DataError(f"has no {name}", where=where, hint="each image needs its source and image_id")
    label = row.get("label")
    if label is not None and (isinstance(label, bool) or not isinstance(label, int) or abs(label) > 10**9):
        raise _not_a_label(label, where)
    split = texts["split"] or split
    if split not in SPLITS:
        raise DataError(f"split must be {' or '.join(SPLITS)}, got {printable(split)!r}", where=where)
    return ListEntry(
        split,
        texts["group"] or texts["source"],
        label=label,
        source=texts["source"],
        class_id=texts["class_id"] or None,
        image_id=texts["image_id"],
        role=texts["role"] or None,
        view=texts["view"] or None,
        digest=_parse_digest(texts["digest"], where),
    )


def _not_a_label(value: object, where: str) -> DataError:
    return DataError(f"label must be a whole number, got {printable(value)!r}", where=where)


def _parse_digest(text: str, where: str) -> bytes | None:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b"?"
    if len(data) not in (0, 32):
        raise DataError(f"digest must be 64 hex digits or empty, got {printable(text)!r}", where=where)
    return data or None


@dataclass(frozen=True)
class ImportTask:
    """A file or folder to read; ``split`` : the split of a file without one in its name."""

    path: Path
    split: str = "test"
    datasets: Sources = LOCAL


class ExchangeFormat(ABC):
    """Format of another project.

    Attributes
    ----------
    about : one clause about the written files.
    has_images : whether images are written, so that roots are needed.
    paths : whether it lists paths of images.
    """

    about: ClassVar[str]
    has_images: ClassVar[bool] = False
    paths: ClassVar[bool] = False

    @abstractmethod
    def write(self, task: ExportTask, folder: Path) -> None:
        """Write the benchmark into an empty folder."""

    @abstractmethod
    def read(self, task: ImportTask) -> Iterable[ListEntry]:
        """Yield the entries of a file or folder, in any order."""


FormatClass = TypeVar("FormatClass", bound=type[ExchangeFormat])

FORMATS: Final = Registry[type[ExchangeFormat]]("format", str(__package__), "wordnet_splits.formats")

ARCHIVE: Final = "kim-archive"
"""The archives of Kim et al., which can only be read, and have splits, roles and sources of their own."""


def register_format(name: str) -> Callable[[FormatClass], FormatClass]:
    """Register the decorated class as the format ``name``."""
    return FORMATS.register(name)


def format_names() -> tuple[str, ...]:
    """Return the names of the formats, sorted."""
    return FORMATS.names()
