"""A pretend source of images ``CLASS-NUMBER.png`` in one folder, for the tests that add it."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

SOURCE = """
from {package}.layouts import Image, Layout
from {package}.source import Source, SourceInfo, register_source


class Flat(Layout):
    name = "flat"

    def __init__(self, root):
        self.root = root

    def images(self, note, splits):
        for path in sorted(self.root.glob("*.png")):
            yield Image(path.stem, path.stem.partition("-")[0], "all", (path.name,))

    def locate(self, image_id):
        return (f"{{image_id}}.png",)

    def read(self, location):
        return (self.root / location[0]).read_bytes()


@register_source
class Pretend(Source):
    name = "pretend"
    splits = ("all",)
    info = SourceInfo("pretend", title="Pretend animals", licence="CC0-1.0")

    @classmethod
    def layouts(cls, root):
        if any(root.glob("zebra-*.png")):
            yield Flat(root)
"""
CATALOG = """class_id index name superclass wnids mapped why count_all count_group
zebra 0 zebra  n02391049 exact  2 
teapot 1 teapot  n04398044 exact  1 
""".replace(" ", "\t")


def write_images(folder: Path) -> None:
    """Write a root of the source: two zebras and a teapot."""
    folder.mkdir()
    for number, name in enumerate(("zebra-0", "zebra-1", "teapot-0")):
        Image.new("L", (8, 8), 90 * number).save(folder / f"{name}.png")
