"""The published class lists that our recipes rebuild, and their differences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wordnet_splits.benchmark.recipe import PublishedList, load_recipe
from wordnet_splits.datasets.sources.by_name import paper_bibtex
from wordnet_splits.studies.class_sets import SetRow, class_sets

Row = tuple[str, ...]


def tables(folder: Path) -> Iterator[list[Row]]:
    """Yield the page's only table; it does not depend on results."""
    del folder
    yield [row_of(row, load_recipe(row.name).published_list) for row in class_sets()]


def row_of(row: SetRow, told: PublishedList | None) -> Row:
    """Return a set as the page shows it."""
    assert told is not None
    counts = (row.groups, row.classes, row.only_published, row.only_ours, row.elsewhere)
    return (f"`{row.name}`", cited(row.paper), told.licence, *(f"{n:,}" for n in counts), row.checked)


def cited(paper: str) -> str:
    """Return a paper as a page names it: ``Ren et al. 2018``."""
    lines = [line.strip() for line in paper_bibtex(paper).splitlines()]
    fields = {key.strip(): value.strip(" {},") for key, _, value in (line.partition("=") for line in lines)}
    authors = [author.partition(",")[0] for author in fields["author"].split(" and ")]
    return f"{authors[0]}{' et al.' if len(authors) > 1 else ''} {fields['year']}"
