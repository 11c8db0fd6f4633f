"""A page that shows pairs of images side by side for a person to judge."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from wordnet_splits.base import pages
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.names import printable
from wordnet_splits.datasets.catalog.image_pairs import COLUMNS, PAIR_VERDICTS, PairRow, tsv_line
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
    pages.write_page(
        path,
        "duplicates",
        title=printable(f"Pairs of {left.name} and {right.name}"),
        threshold=threshold,
        pairs=[_pair(row, images) for row in shown],
        hidden=len(hidden),
        verdicts=PAIR_VERDICTS,
        head=tsv_line(COLUMNS),
        hidden_lines=hidden_lines,
    )


def _pair(row: PairRow, images: tuple[Mapping[tuple[str, str], str], ...]) -> dict[str, object]:
    figures = []
    for side, thumbnails in zip("ab", images, strict=True):
        caption = " ".join(
            filter(None, (row[f"{c}_{side}"] for c in ("source", "split", "class_id", "image_id")))
        )
        address = thumbnails.get((row[f"source_{side}"], row[f"image_id_{side}"]), "")
        figures.append((address, printable(caption)))
    shown = {key: printable(row[key]) for key in ("reviewer", "distance", "note")}
    cells = tsv_line([row[c] for c in COLUMNS[:-3]]).rstrip("\n")
    return {**shown, "verdict": row["verdict"], "cells": cells, "figures": figures}


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
