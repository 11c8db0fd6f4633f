"""A page that shows pairs of images side by side for a person to judge."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.names import printable
from wordnet_splits.datasets.catalog.picture_pairs import COLUMNS, PAIR_VERDICTS, PairRow, tsv_line
from wordnet_splits.datasets.sources.image_set import ImageSet

SHOWN_PAIRS: Final = 300
THUMBNAIL: Final = 160
"""Longest side of an image on the page, in pixels; smaller ones keep their size."""


def write_page(
    path: Path, rows: Sequence[PairRow], left: ImageSet, right: ImageSet, *, threshold: int
) -> None:
    """Write the page of the first `SHOWN_PAIRS` pairs, those without a verdict first.

    The page does not use the network: its button saves ``verdicts.tsv``, including the verdicts on rows that
    are not shown. Raises OutputError.
    """
    pairs = sorted((row for row in rows if row["image_id_b"]), key=lambda row: bool(row["verdict"]))
    shown, hidden = pairs[:SHOWN_PAIRS], pairs[SHOWN_PAIRS:]
    hidden_verdicts = [row for row in (*hidden, *(r for r in rows if not r["image_id_b"])) if row["verdict"]]
    hidden_lines = "".join(tsv_line([row[c] for c in COLUMNS]) for row in hidden_verdicts)
    images = _thumbnails(left, shown, "a"), _thumbnails(right, shown, "b")
    style, script = (
        files("wordnet_splits.data").joinpath(f"duplicates/page.{kind}").read_text("utf-8")
        for kind in ("css", "js")
    )
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{_hash(style)}'; "
        f"script-src 'sha256-{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    articles = "\n".join(_article(row, images) for row in shown)
    more = f"; {len(hidden):,} more are in duplicates.tsv" if hidden else ""
    title = f"Pairs of {left.name} and {right.name}"
    write_text(
        path,
        f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{_text(title)}</title><style>{style}</style></head><body>
<header><h1>{_text(title)}</h1>
<p>{len(shown):,} pairs at most {threshold} of 128 bits apart{more}. Judge them, give your initials, save
<code>verdicts.tsv</code> into the folder of this page, and run the command again.</p>
<p><label>Initials <input id="reviewer" size="6"></label> <button id="save">Save verdicts.tsv</button>
<output id="count"></output></p></header>
{articles}
<template id="head">{escape(tsv_line(COLUMNS))}</template>
<template id="hidden">{escape(hidden_lines)}</template>
<script>{script}</script></body></html>
""",
    )


def _article(row: PairRow, images: tuple[Mapping[tuple[str, str], str], ...]) -> str:
    figures = ""
    for side, thumbnails in zip("ab", images, strict=True):
        caption = " ".join(
            filter(None, (row[f"{c}_{side}"] for c in ("source", "split", "class_id", "image_id")))
        )
        address = thumbnails.get((row[f"source_{side}"], row[f"image_id_{side}"]), "")
        shown = f'<img src="{address}" alt="">' if address else "<p>cannot be read</p>"
        figures += f"<figure>{shown}<figcaption>{_text(caption)}</figcaption></figure>"
    options = "".join(
        f"<option{' selected' if verdict == row['verdict'] else ''}>{verdict}</option>"
        for verdict in PAIR_VERDICTS
    )
    cells = escape(tsv_line([row[c] for c in COLUMNS[:-3]]).rstrip("\n"), quote=True)
    return (
        f'<article data-row="{cells}" data-reviewer="{_text(row["reviewer"])}">{figures}'
        f"<p>{_text(row['distance'])} bits</p><p><select>{options}</select> "
        f'<input placeholder="note" value="{_text(row["note"])}"></p></article>'
    )


def _thumbnails(images: ImageSet, rows: Sequence[PairRow], side: str) -> dict[tuple[str, str], str]:
    """Return the data URL of each image on the page, by source and id."""
    ids = pa.array(sorted({row[f"image_id_{side}"] for row in rows}), pa.string())
    addresses = {}
    for row in images.table.filter(pc.is_in(images.table["image_id"], value_set=ids)).to_pylist():
        try:
            image = images.reader.image(row["key"])
        except (SourceError, DataError):
            continue
        image.thumbnail((THUMBNAIL, THUMBNAIL), Image.Resampling.LANCZOS)
        file = io.BytesIO()
        image.save(file, "PNG" if max(image.size) <= 64 else "JPEG")
        kind = "png" if max(image.size) <= 64 else "jpeg"
        data = base64.b64encode(file.getvalue()).decode()
        addresses[row["source"], row["image_id"]] = f"data:image/{kind};base64,{data}"
    return addresses


def _text(text: str) -> str:
    return escape(printable(text), quote=True)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
