"""A source of another package, with its catalog, under entry points of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.wordnet_splits import own_pictures as own
from wordnet_splits.benchmark.construct.run import build_benchmark
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.inventory import inventory_splits
from wordnet_splits.datasets.catalog.table import CATALOGS_OF_PACKAGES
from wordnet_splits.datasets.sources import open_source, source_info, source_names
from wordnet_splits.datasets.sources.info import SOURCES

MODULE = """
from pathlib import Path

from wordnet_splits.datasets.sources.info import SourceInfo
from wordnet_splits.datasets.sources.layouts import Image, Layout
from wordnet_splits.datasets.sources.source import Source, register_source


class Flat(Layout):
    name = "flat"

    def __init__(self, root):
        self.root = root

    def images(self, note, splits):
        for path in sorted(self.root.glob("*.png")):
            yield Image(path.stem, path.stem.partition("-")[0], "all", (path.name,))

    def locate(self, image_id):
        return (f"{image_id}.png",)

    def read(self, location):
        return (self.root / location[0]).read_bytes()


@register_source
class Animals(Source):
    name = "animals"
    splits = ("all",)
    catalog_file = Path(__file__).with_name("animals.tsv")
    info = SourceInfo("animals", title="Animals")

    @classmethod
    def layouts(cls, root):
        yield Flat(root)
"""
RECIPE = """
schema = 1
name = "animals"
[[group]]
name = "known"
role = "id"
source = "animals"
classes = { listed = ["zebra"] }
images = { test = { from = "all", all = true } }
[[group]]
name = "other"
role = "near"
source = "animals"
classes = { rest = true }
images = { test = { from = "all", all = true } }
"""


def test_a_package_adds_a_source_with_its_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated: Any
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "animals_source.py").write_text(MODULE, "utf-8")
    own.catalog(tmp_path / "animals.tsv", ["zebra", "teapot"], {"all": 1})
    for registry in (CATALOGS_OF_PACKAGES, SOURCES):
        isolated(registry, [("animals", "animals_source:Animals")])
    for name, grey in (("zebra-0", 9), ("teapot-0", 99)):
        Image.new("L", (8, 8), grey).save(tmp_path / f"{name}.png")
    assert "animals" in source_names()
    assert [item.class_id for item in load_catalog("animals")] == ["zebra", "teapot"]
    assert inventory_splits("animals") == ()
    assert open_source("animals", tmp_path).count() == {"all": 2}
    assert source_info("animals").title == "Animals"
    (tmp_path / "animals.toml").write_text(RECIPE, "utf-8")
    build = build_benchmark(tmp_path / "animals.toml", roots={"animals": tmp_path})
    assert [row.actual for row in build.manifest.groups if row.split == "test"] == [1, 1]
