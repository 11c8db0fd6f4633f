"""The frozen hashes of what `fix` makes of real images, and how they are computed.

``python -m tools.golden_tables DATA`` compares them with the images below DATA and needs only
NumPy and Pillow, so that any version of Pillow can be asked; ``--write`` freezes them anew.
A hash is SHA-256 of height, width and pixels, of the image as decoded and as resized; that of a class or a
set is SHA-256 over its lines ``id<TAB>hash<LF>``, sorted by id.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fix_resize.decode import decode
from fix_resize.resize import apply
from fix_resize.spec import get_spec
from wordnet_splits.base.digests import digest_pixels

FOLDER = Path(__file__).parent.parent / "tests" / "fix_resize" / "golden"
COLUMNS = ("id", "images", "decoded", "fix")


class Row(NamedTuple):
    """A line of a table: an image, a class, or ``all``."""

    id: str
    images: int
    decoded: str
    fix: str


def image_rows(files: Iterator[Path]) -> list[Row]:
    """Hash images; their ids are the file names without extension."""
    rows = []
    for path in files:
        image = decode(path.read_bytes(), where=path.name).image
        hashes = digest_pixels(np.asarray(image)).hex(), digest_pixels(apply(get_spec("fix"), image)).hex()
        rows.append(Row(path.stem, 1, *hashes))
    return sorted(rows)


def combined(name: str, rows: list[Row]) -> Row:
    """Hash the hashes of a class or a set."""

    def over(column: str) -> str:
        lines = sorted(f"{row.id}\t{getattr(row, column)}\n" for row in rows)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    return Row(name, sum(row.images for row in rows), over("decoded"), over("fix"))


def photographs(data: Path) -> list[Row]:
    """One row for each of the 200 ImageNet photographs."""
    return image_rows((data / "imagenet" / "train").glob("*/*.JPEG"))


def textures(data: Path) -> list[Row]:
    """One row for each of the 60 DTD textures."""
    return image_rows((data / "dtd" / "images").glob("*/*.jpg"))


def tiny_imagenet(data: Path) -> list[Row]:
    """One row for each of the 200 classes of Tiny ImageNet's validation set."""
    folder = data / "tiny-imagenet-200" / "val"
    lines = (folder / "val_annotations.txt").read_text(encoding="utf-8").splitlines()
    classes = {Path(name).stem: wnid for name, wnid, *_ in (line.split("\t") for line in lines)}
    members: dict[str, list[Row]] = {}
    for row in image_rows((folder / "images").glob("*.JPEG")):
        members.setdefault(classes[row.id], []).append(row)
    return [combined(wnid, rows) for wnid, rows in sorted(members.items())]


TABLES: dict[str, Callable[[Path], list[Row]]] = {
    "imagenet": photographs,
    "dtd": textures,
    "tiny-imagenet-val": tiny_imagenet,
}


def compute(name: str, data: Path) -> list[Row]:
    """Compute a table from the images below ``data``; its last row is for all images."""
    rows = TABLES[name](data)
    return [*rows, combined("all", rows)]


def frozen(name: str) -> list[Row]:
    """Return a table as it was frozen."""
    lines = (FOLDER / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    cells = [line.split("\t") for line in lines if not line.startswith("#")]
    assert tuple(cells[0]) == COLUMNS
    return [Row(id_, int(images), *hashes) for id_, images, *hashes in cells[1:]]


def write(name: str, rows: list[Row]) -> None:
    """Freeze a table."""
    head = (
        f"# hashes of real images, decoded and after fix (spec {get_spec('fix').id}); see golden_tables.py\n"
    )
    lines = ["\t".join(COLUMNS), *("\t".join(map(str, row)) for row in rows)]
    (FOLDER / f"{name}.tsv").write_text(head + "\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def main() -> int:
    """Compare, or freeze; the exit status is 1 when a table differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    differs = False
    for name in TABLES:
        rows = compute(name, arguments.data)
        if arguments.write:
            write(name, rows)
        changed = [row.id for row, old in zip(rows, frozen(name), strict=True) if row != old]
        differs |= bool(changed)
        print(
            f"{name}: {rows[-1].images} images, {len(changed)} rows differ {' '.join(changed[:5])}".rstrip()
        )
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
