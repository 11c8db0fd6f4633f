"""Datasets of a user's own, made small: pictures of noise in class folders, a table, or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

CATALOG_HEAD = "class_id\tindex\tname\tsuperclass\twnids\tmapped\twhy"
SYNSETS = {
    "golden retriever": "n02099601",
    "zebra": "n02391049",
    "acoustic guitar": "n02676566",
    "teapot": "n04398044",
}


def picture(number: int) -> Image.Image:
    """A picture that differs from that of any other number."""
    pixels = np.random.default_rng(number).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def class_folders(root: Path, classes: Iterable[str], splits: Mapping[str, int]) -> None:
    """Write ``[split/]class/picture N.png``; a split called "" has no folder."""
    number = 0
    for split, count in splits.items():
        for class_id in classes:
            folder = root / split / class_id
            folder.mkdir(parents=True, exist_ok=True)
            for n in range(count):
                picture(number).save(folder / f"picture {n}.png")
                number += 1


def table(
    root: Path, rows: Iterable[tuple[str, ...]], head: tuple[str, ...], name: str = "labels.csv"
) -> None:
    """Write a table of images and the pictures that it names."""
    for number, (path, *_) in enumerate(rows):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        picture(number).save(root / path)
    with (root / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def catalog(path: Path, classes: Iterable[str], counts: Mapping[str, int]) -> None:
    """Write a catalog whose classes all have the same counts."""
    lines = ["# made for a test", "\t".join([CATALOG_HEAD, *(f"count_{s}" for s in counts), "count_group"])]
    for index, class_id in enumerate(classes):
        wnid = SYNSETS.get(class_id, "")
        cells = [class_id, str(index), class_id, "", wnid, "exact" if wnid else "", "" if wnid else "none"]
        lines.append("\t".join([*cells, *map(str, counts.values()), ""]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def declare(root: Path, name: str, layout: str, more: str = "") -> None:
    """Write ``dataset.toml``."""
    text = f'name = "{name}"\nlayout = "{layout}"\ncatalog = "{name}.tsv"\n{more}'
    (root / "dataset.toml").write_text(text, encoding="utf-8")


def attribute(recipe: Path) -> None:
    """Add ``[about]`` to a recipe: what `hub publish` asks for."""
    about = '\n[about]\nlicence = "CC0-1.0"\nauthors = [{ name = "Ada Lovelace" }]\n'
    recipe.write_text(recipe.read_text(encoding="utf-8") + about, encoding="utf-8")
