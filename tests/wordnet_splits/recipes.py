"""Small recipes and small roots for tests of whole commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.wordnet_splits.datasets.sources.trees import jpeg
from wordnet_splits.datasets.catalog.inventory import load_inventory

HEAD = 'schema = 1\nname = "mine"\n'
EVERY = '{ test = { from = "all", all = true } }'


def group(name: str, role: str, source: str, classes: str, images: str = EVERY, more: str = "") -> str:
    return (
        f'[[group]]\nname = "{name}"\nrole = "{role}"\nsource = "{source}"\n'
        f"classes = {classes}\nimages = {images}\n{more}\n"
    )


KNOWN = group("known", "id", "digits", '{ listed = ["0"] }')
BANDED = '{ listed = ["banded", "dotted"] }'
FAR = group("far", "far", "dtd", BANDED, '{ test = { from = "all", per_class = 30 } }')


def write_recipe(folder: Path, *groups: str, head: str = HEAD) -> Path:
    path = folder / "mine.toml"
    path.write_text(head + "\n".join(groups), encoding="utf-8")
    return path


def dtd_ids(classes: Sequence[str]) -> list[str]:
    table = load_inventory("dtd", "all")
    assert table is not None
    return [i for i in table.column("image_id").to_pylist() if i.split("/")[0] in classes]


def write_dtd(
    root: Path, classes: Sequence[str] = ("banded", "dotted"), size: tuple[int, int] = (12, 10)
) -> Path:
    """DTD as its publisher lays it out: every real id of some classes, over one picture with other tails.

    What follows the end of a JPEG is no part of the picture, but of the file, and so of its digest.
    """
    picture = jpeg(0, size)
    for number, image_id in enumerate(dtd_ids(classes)):
        path = root / "images" / f"{image_id}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture + number.to_bytes(4, "big"))
    return root


def visible(folder: Path) -> list[str]:
    """The names in a folder but for hidden ones."""
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
