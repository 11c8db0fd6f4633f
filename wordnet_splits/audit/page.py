"""The report of an audit as a single HTML file: each leak as a path, sortable, with available pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image

from wordnet_splits.audit.class_list import ClassList
from wordnet_splits.audit.images import images_by_class
from wordnet_splits.base import pages
from wordnet_splits.base.errors import SourceError
from wordnet_splits.benchmark.images.raw_images import open_sources
from wordnet_splits.datasets.catalog.table import known_sources
from wordnet_splits.datasets.sources import Source

if TYPE_CHECKING:
    from wordnet_splits.audit.report import Audit, AuditedClass, AuditedLists

COLUMNS = ("class", "relation", "known class", "edges", "path", "similarity to nearest", "kin")
PICTURES_PER_CLASS = 2
THUMBNAIL_SIZE = 96
"""Longer side of a picture on the page, in pixels."""
JPEG_QUALITY = 80

Thumbnails = Mapping[str, list[str]]
"""Class id -> pictures as ``data:`` addresses."""
Figures = Sequence[tuple[str, str]]
"""Names of figures and their texts."""


def write_page(report: Audit, path: Path, limits: str) -> None:
    """Write the page of an audit, with the classes that have a relation.

    Raises
    ------
    SourceError : a root is absent, unreadable or of another dataset.
    OutputError : the file cannot be written.
    """
    lists, related = report.lists, report.related
    listed_pictures: Thumbnails = {}
    known_pictures: Thumbnails = {}
    unreadable = 0
    if lists is not None:
        listed_ids = {item.id for item in related}
        known_ids = {item.other for item in related if item.other is not None}
        listed_pictures, unreadable = _thumbnails(lists.listed, listed_ids, lists)
        known_pictures, unreadable_known = _thumbnails(lists.known, known_ids, lists)
        unreadable += unreadable_known
    has_pictures = bool(listed_pictures or known_pictures)
    picture_columns = ("pictures", "pictures of the known class") if has_pictures else ()
    rows = [_row(item, report, (listed_pictures, known_pictures) if has_pictures else ()) for item in related]
    notes = "Select a heading to sort. CSV and Parquet also have the classes without a relation."
    if unreadable:
        notes += f" {unreadable:,} pictures cannot be read."
    pages.write_page(
        path,
        "audit",
        title=report.heading,
        figures=report.summary(),
        notes=notes,
        columns=[*COLUMNS, *picture_columns],
        unsorted=picture_columns,
        rows=rows,
        limits=limits,
    )


def write_table_page(
    path: Path,
    heading: str,
    figures: Figures,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | int | None]],
    limits: str,
) -> None:
    """Write a page of figures and of a table that a reader can sort.

    Raises
    ------
    OutputError : the file cannot be written.
    """
    cells = [
        [
            Cell(f"{value:,}", value=f"{value}", number=True) if isinstance(value, int) else Cell(value or "")
            for value in row
        ]
        for row in rows
    ]
    notes = "Select a heading to sort."
    pages.write_page(
        path,
        "audit",
        title=heading,
        figures=figures,
        notes=notes,
        columns=columns,
        unsorted=(),
        rows=cells,
        limits=limits,
    )


class Cell(NamedTuple):
    """A cell of the table: its text with a gloss, the value to sort by, or images with their description."""

    text: str
    gloss: str = ""
    value: str = ""
    number: bool = False
    images: Sequence[str] = ()
    alt: str = ""


def _row(item: AuditedClass, report: Audit, pictures: Collection[Thumbnails]) -> list[Cell]:
    """Return the table row of a class."""
    names = [report.lists.taxonomy.name(wnid) for wnid in item.path] if report.lists else item.path
    similarity = "" if item.mean is None else f"{item.mean:.3f}"
    cells = [
        Cell(_named(item.id, item.name), item.gloss, item.id),
        Cell(str(item.relation), value=str(item.relation)),
        Cell(_named(item.other or "", item.other_name or ""), item.other_gloss, item.other_name or ""),
        Cell("" if item.edges is None else f"{item.edges}", number=True),
        Cell(" > ".join(names)),
        Cell(similarity, value=similarity, number=True),
        Cell(f"{item.kin}", number=True),
    ]
    for thumbnails, class_id in zip(pictures, (item.id, item.other), strict=False):
        cells.append(Cell("", images=thumbnails.get(class_id or "", ()), alt=class_id or ""))
    return cells


def _named(class_id: str, name: str) -> str:
    return class_id if name in ("", class_id) else f"{name} ({class_id})"


def _thumbnails(classes: ClassList, ids: Collection[str], lists: AuditedLists) -> tuple[Thumbnails, int]:
    """Return pictures of some classes of a list, and the number of pictures that cannot be read."""
    by_class = images_by_class(classes) or {}
    names = {source for images in by_class.values() for source, _, _ in images}
    if not by_class and classes.name in known_sources():
        names = {classes.name}
    sources = open_sources(sorted(names), lists.roots, lists.declarations)
    if by_class:
        chosen = {i: sorted((s, image) for s, image, _ in by_class.get(i, ()) if s in sources) for i in ids}
    else:
        chosen = _scanned(sources, ids)
    thumbnails: dict[str, list[str]] = {}
    unreadable = 0
    for class_id, images in chosen.items():
        for source_name, image_id in images[:PICTURES_PER_CLASS]:
            try:
                address = _thumbnail(sources[source_name], image_id)
            except (SourceError, OSError):
                unreadable += 1
                continue
            thumbnails.setdefault(class_id, []).append(address)
    return thumbnails, unreadable


def _scanned(sources: Mapping[str, Source], ids: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """Return (source, image_id) of the images of some classes, sorted, from a scan of the roots."""
    chosen: dict[str, list[tuple[str, str]]] = {}
    for class_id, image in _scan(sources):
        if class_id in ids:
            chosen.setdefault(class_id, []).append(image)
    return {class_id: sorted(images) for class_id, images in chosen.items()}


def _scan(sources: Mapping[str, Source]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, source in sources.items():
        for image_id, class_id, _ in source.rows(source.splits):
            yield class_id, (name, image_id)


def _thumbnail(source: Source, image_id: str) -> str:
    """Return a small picture as a ``data:`` address."""
    image = source.decode(source.read([image_id])[0], image_id)
    image.thumbnail((THUMBNAIL_SIZE, THUMBNAIL_SIZE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=JPEG_QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
