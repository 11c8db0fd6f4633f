"""What is told of each source: complete, well formed, and nothing claimed as a checksum that is none."""

from __future__ import annotations

import re
import tomllib
from importlib import resources

import pytest

from tests.raising import raises
from wordnet_splits.base import errors
from wordnet_splits.datasets.catalog import catalog_names
from wordnet_splits.datasets.sources import source_class, source_info, source_names


@pytest.mark.parametrize("name", source_names())
def test_every_source_is_described(name: str) -> None:
    info = source_info(name)
    for text in (info.title, info.url, info.licence, info.size, info.how, info.tree, info.bibtex):
        assert text == text.strip()
        assert text
    assert re.match(r"https?://\S+$", info.url)
    assert "\n" not in info.how
    assert bool(info.tree.count("ROOT")) == source_class(name).rooted
    for file in info.files:
        assert file.md5 is None or re.fullmatch(r"[0-9a-f]{32}", file.md5)
        assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)


@pytest.mark.parametrize("name", source_names())
def test_the_citation_is_one_balanced_entry(name: str) -> None:
    bibtex = source_info(name).bibtex
    assert re.match(r"@(article|inproceedings|techreport|misc)\{[a-z]+\d{4}[a-z]+,\n", bibtex)
    assert bibtex.count("{") == bibtex.count("}")
    for key in ("title", "author", "year"):
        assert len(re.findall(rf"^  {key} +=", bibtex, re.MULTILINE)) == 1


def test_one_key_names_one_work() -> None:
    works = {source_info(name).bibtex for name in source_names()}
    assert len({work.splitlines()[0] for work in works}) == len(works)


def test_the_table_holds_the_sources_and_no_other() -> None:
    text = resources.files("wordnet_splits").joinpath("data/sources.toml").read_text("utf-8")
    assert set(tomllib.loads(text)) == set(source_names())
    assert set(source_names()) <= set(catalog_names())


def test_an_unknown_source_offers_the_nearest() -> None:
    with raises(errors.UnknownNameError, near="places365"):
        source_info("places")
