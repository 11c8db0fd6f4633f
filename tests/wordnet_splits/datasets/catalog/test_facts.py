"""The shipped tables are what the converters make of the published facts and the publishers' pixels."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tools.facts.catalogs import CONVERTERS, hand_map, render
from tools.facts.inventories import Inventory, inventory_table, unique, write_digits, write_inventories
from tools.facts.lists import openood_source, write_lists
from tools.facts.published import Published
from wordnet_splits.base.parquet import read_table
from wordnet_splits.datasets.catalog import CATALOGS, catalog_names
from wordnet_splits.datasets.catalog.inventory import DATA


def tables(root: Path) -> list[str]:
    """Return the names of all inventories and lists below a data folder."""
    files = [*(root / "inventories").rglob("*.parquet"), *(root / "lists").rglob("*.parquet")]
    return sorted(path.relative_to(root).as_posix() for path in files)


@pytest.mark.oracle
def test_regenerating_gives_the_shipped_rows(facts: Path, real_data: Path, tmp_path: Path) -> None:
    write_digits(tmp_path)
    write_inventories(facts, real_data, tmp_path)
    write_lists(facts, tmp_path)
    assert tables(tmp_path) == tables(DATA)
    for name in tables(DATA):
        shipped, made = read_table(DATA / name), read_table(tmp_path / name)
        assert shipped.equals(made), name
        assert shipped.schema.metadata == made.schema.metadata, name


def test_the_package_carries_at_most_twelve_megabytes_of_inventories_and_lists() -> None:
    assert sum((DATA / name).stat().st_size for name in tables(DATA)) <= 12_000_000


def test_the_converter_refuses_what_is_not_whole() -> None:
    some = Inventory({"b": "x", "a": "y"}, "origin")
    assert inventory_table(some, "all", 2)["image_id"].to_pylist() == ["a", "b"]
    with pytest.raises(ValueError, match="2 images, not 3"):
        inventory_table(some, "all", 3)
    with pytest.raises(ValueError, match="1 images are in the facts or the pixels alone, the first is b"):
        inventory_table(Inventory(some.classes, "origin", {"a": bytes(32)}), "all", 2)
    with pytest.raises(ValueError, match="1 image ids occur twice, the first is a"):
        unique([("a", "x"), ("a", "y")])
    with pytest.raises(ValueError, match="is of no set whose names are known"):
        openood_source("cifar10c/04972_8.png")


def test_published_bodies_leave_out_only_our_header(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"# source: a/b:c@1\n# note\n# source: d/e:f@2\nid\tclass\n1\tx\n")
    published = Published(path)
    assert published.body == b"id\tclass\n1\tx\n"
    assert published.sha256 == hashlib.sha256(b"id\tclass\n1\tx\n").hexdigest()
    assert published.origin == "a/b:c@1; d/e:f@2"
    assert list(published.records()) == [{"id": "1", "class": "x"}]


def test_every_catalog_has_a_converter() -> None:
    assert tuple(sorted(CONVERTERS)) == catalog_names()


@pytest.mark.parametrize("source", CONVERTERS)
def test_shipped_table_is_what_the_facts_give(facts: Path, source: str) -> None:
    table = CONVERTERS[source](facts)
    text = (CATALOGS / f"{source}.tsv").read_text(encoding="utf-8")
    assert render(table, hand_map(source, table)) == text
