"""Paths of images: in the tree of an export, as files lie on disk, and in other projects.

The tree is ``<split>/<group>/<class>/<image>``, with ids percent-encoded: all characters but ASCII letters,
digits and ``_.-~`` are encoded as in a URL, so that names are valid on every file system, stay in their
folder and can be decoded. So are names that Windows reserves (``CON``, a dot at the end), and capitals of
names that differ only in case: `Dog` next to `dog` is ``%44og``. A path on disk is ``<source>/<path below the
source's root>``, percent-encoded only if its format cannot hold it: OpenOOD's paths end at the first blank.
The paths of other projects are in ``data/exchange/paths.tsv``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.manifest.tables import SPLITS
from wordnet_splits.datasets.catalog import catalog_names, load_catalog
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.datasets.sources import Source, open_source
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.exchange.formats import slug

MAX_NAME_BYTES: Final = 255

DEVICES: Final = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10)))
)
"""Names that Windows reserves for devices, with any extension."""

_CAPITAL: Final = re.compile("%[0-9A-F]{2}|[A-Z]")


def encoded(text: str, *, dots: bool = True, capitals: bool = True) -> str:
    """Return an id as a file name without extension; ``dots`` : keep dots, except at the start and the end.

    >>> encoded("apple_pie/1005649"), encoded(".."), encoded("001.ak47", dots=False)
    ('apple_pie%2F1005649', '%2E%2E', '001%2Eak47')
    >>> encoded("CON"), encoded("dog."), encoded("Dog", capitals=False)
    ('%43ON', 'dog%2E', '%44og')
    """
    name = quote(text, safe="")
    if not capitals:
        name = _CAPITAL.sub(lambda match: match[0] if len(match[0]) > 1 else _escape(match[0]), name)
    if not dots:
        name = name.replace(".", _escape("."))
    if name.startswith(".") or name.partition(".")[0].lower() in DEVICES:
        name = _escape(name[0]) + name[1:]
    return name[:-1] + _escape(".") if name.endswith(".") else name


def _escape(letter: str) -> str:
    return f"%{ord(letter):02X}"


def decoded(name: str) -> str | None:
    """Return the id of a file name without extension; None if no id is encoded so."""
    try:
        text = unquote(name, errors="strict")
    except UnicodeDecodeError:
        return None
    options = product((True, False), repeat=2)
    encodings = (encoded(text, dots=dots, capitals=capitals) for dots, capitals in options)
    # the last: earlier versions did not encode devices and dots at the end
    return text if text and name in (*encodings, quote(text, safe="")) else None


def case_clashes(ids: pa.Array) -> frozenset[str]:
    """Return the ids that differ from another id only in case."""
    distinct = pc.unique(ids)
    lower = pc.ascii_lower(distinct)
    counts = pc.value_counts(lower)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    return frozenset(distinct.filter(pc.is_in(lower, value_set=repeated)).to_pylist())


class CaseClashes(NamedTuple):
    """Classes, and images ("<class_id>\\0<image_id>"), of a part whose names differ only in case."""

    classes: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()

    @classmethod
    def of(cls, table: pa.Table) -> CaseClashes:
        """Find the clashes in an image table."""
        classes, ids = (table[name].combine_chunks() for name in ("class_id", "image_id"))
        return cls(case_clashes(classes), case_clashes(pc.binary_join_element_wise(classes, ids, "\0")))


def tree_path(
    split: str,
    group: str,
    class_id: str,
    image_id: str,
    extension: str,
    clashes: CaseClashes = CaseClashes(),
) -> str:
    """Return the path of an image in the tree of an export; ``clashes`` : case clashes in its part.

    Raises DataError if an id is empty, or too long for a file name.
    """
    folder = encoded(class_id, capitals=class_id not in clashes.classes)
    stem = encoded(image_id, capitals=f"{class_id}\0{image_id}" not in clashes.images)
    file = f"{stem}{extension}"
    for name in (folder, file):
        if len(name) > MAX_NAME_BYTES or not name:
            reason = f"{printable(name)!r} is too long for a file name" if name else "an id is empty"
            raise DataError(reason, where=f"{group} {split}", hint="export as csv, hub or webdataset")
    return f"{split}/{group}/{folder}/{file}"


class TreePath(NamedTuple):
    """The parts of a path of the tree; split and group are "" if the path starts with the class."""

    split: str
    group: str
    class_id: str
    image_id: str


def parse_tree_path(path: str) -> TreePath | None:
    """Return the parts of a path that ends in two names as from `tree_path`; None for other paths."""
    parts = PurePosixPath(path).parts
    if len(parts) < 2:
        return None
    stem, dot, _ = parts[-1].rpartition(".")
    class_id, image_id = decoded(parts[-2]), decoded(stem if dot else parts[-1])
    if class_id is None or image_id is None:
        return None
    split, group = parts[:2] if len(parts) == 4 and parts[0] in SPLITS else ("", "")
    return TreePath(split, slug(group) if group else "", class_id, image_id)


TABLE = Path(__file__).parent.parent / "data" / "exchange" / "paths.tsv"
_FIELD = re.compile(r"\{(\w+)\}")
_FIELD_REGEXES = {
    "class": "[^/]+",
    "folder": "[^/]+",
    "split": "[a-z]+",
    "number": r"\d{6}",
    "index": r"\d+",
    "position": r"\d+",
    "above": ".+",
    "name": "[^/]+",
}


class LocatedImage(NamedTuple):
    """An image that a path refers to; ``folder`` is the class as in the path, "" if the path has none."""

    source: str
    image_id: str
    folder: str


@dataclass(frozen=True)
class PathPattern:
    """A row of the table: the paths that ``format`` uses for some images of ``source``."""

    format: str
    source: str
    path: str
    id: str

    @cached_property
    def prefix(self) -> str:
        """The text that all its paths start with."""
        return self.path.partition("{")[0]

    def write(self, image_id: str, class_id: str) -> str | None:
        """Return the path of an image, None if the pattern does not apply to its id."""
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

    def read(self, path: str) -> LocatedImage | None:
        """Return the image that a path refers to, None if the path does not match."""
        match = _regex(self.path, self.id).fullmatch(path)
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
        return LocatedImage(self.source, image_id, fields.get("class") or fields.get("folder") or "")


def official_path(format_name: str, source: str, image_id: str, class_id: str) -> str | None:
    """Return the path of an image in another project, None if it is unknown."""
    patterns = _patterns(format_name, source)
    return next((path for p in patterns if (path := p.write(image_id, class_id))), None)


def find_image(format_name: str, path: str) -> LocatedImage | None:
    """Return the image that a path of another project refers to, None if the path is unknown."""
    patterns = (p for p in _patterns(format_name) if path.startswith(p.prefix))
    return next((image for p in patterns if (image := p.read(path))), None)


@cache
def _regex(path: str, image_id: str) -> re.Pattern[str]:
    fields = {**_FIELD_REGEXES, "id": image_id}
    pieces = _FIELD.split(path)  # text and field names alternate
    regexes = [f"(?P<{p}>{fields[p]})" if n % 2 else re.escape(p) for n, p in enumerate(pieces)]
    return re.compile("".join(regexes), re.ASCII)


@cache
def _patterns(format_name: str, source: str | None = None) -> tuple[PathPattern, ...]:
    """Return the patterns of a format, for one source or for all."""
    lines = [line for line in read_text(TABLE).splitlines() if not line.startswith("#")]
    patterns = (PathPattern(*line.split("\t")) for line in lines[1:])
    return tuple(p for p in patterns if p.format == format_name and source in (None, p.source))


PATHS: Final = ("tree", "disk")
"""Kinds of paths in a list: in the tree of an export (or the other project's), or on disk."""
ENDS_AT_BLANK: Final = frozenset({"openood"})
"""Formats whose paths cannot have blanks."""

_BLANK: Final = re.compile(r"[\s\x00-\x1f]")


def disk_path(source: Source, image_id: str) -> str | None:
    """Return the path of an image, not encoded; None if it has no file of its own."""
    file = source.file(image_id)
    if file is None or source.root is None:
        return None
    if not file.is_relative_to(source.root) or ".." in (relative := file.relative_to(source.root)).parts:
        raise DataError(f"{printable(file)} is not below the root", where=source.describe(image_id))
    return (PurePath(source.name) / relative).as_posix()


def encoded_path(path: str, format_name: str) -> str:
    """Return a path as a format can hold it: the same, or percent-encoded.

    >>> encoded_path("mypics/cat 1.png", "openood"), encoded_path("mypics/cat 1.png", "openset-imagenet")
    ('mypics/cat%201.png', 'mypics/cat 1.png')
    """
    if format_name in ENDS_AT_BLANK and _BLANK.search(path):
        return _BLANK.sub(lambda match: quote(match[0]), path.replace("%", "%25"))
    return path


class DiskPaths:
    """Images by their paths on disk, from a scan of the root of each source whose paths occur."""

    def __init__(self, roots: Roots, format_name: str, datasets: Sources) -> None:
        self._roots, self._format, self._datasets = roots, format_name, datasets
        self._ids: dict[str, dict[str, str]] = {}

    def find(self, path: str, source: str | None = None) -> tuple[str, str] | None:
        """Return source and image id of a path, None if no root has such a file.

        A path without the name of a source is one below the root of ``source``, if that is a user's dataset.
        """
        image = self._find(path)
        if image is None and source is not None and source not in catalog_names():
            image = self._find(f"{source}/{path}")
        return image

    def _find(self, path: str) -> tuple[str, str] | None:
        name, slash, _ = path.partition("/")
        if not slash or name not in self._roots:
            return None
        if name not in self._ids:
            source = open_source(name, self._roots[name], self._datasets)
            paths = ((disk_path(source, image_id), image_id) for image_id, _, _ in source.rows(source.splits))
            self._ids[name] = {encoded_path(p, self._format): image_id for p, image_id in paths if p}
        image_id = self._ids[name].get(path)
        return None if image_id is None else (name, image_id)
