"""The shipped catalogs agree with the published facts they were made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.facts.catalogs import CONVERTERS, hand_map, render
from wordnet_splits.datasets.catalog import CATALOGS, catalog_names


def test_every_catalog_has_a_converter() -> None:
    assert tuple(sorted(CONVERTERS)) == catalog_names()


@pytest.mark.parametrize("source", CONVERTERS)
def test_shipped_table_is_what_the_facts_give(facts: Path, source: str) -> None:
    table = CONVERTERS[source](facts)
    text = (CATALOGS / f"{source}.tsv").read_text(encoding="utf-8")
    assert render(table, hand_map(source, table)) == text


def test_digits_counts_are_scikit_learns() -> None:
    target = pytest.importorskip("sklearn.datasets").load_digits().target
    lines = (CATALOGS / "digits.tsv").read_text(encoding="utf-8").splitlines()[2:]
    assert [int(line.split("\t")[7]) for line in lines] == [(target == d).sum() for d in range(10)]
