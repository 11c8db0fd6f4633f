"""Regenerate inflect's answers for the words of the shipped catalogs.

``python -m tools.facts.inflections`` rewrites ``wordnet_splits/data/inflected.tsv`` with the inflect at hand.
Run it when a catalog gets new names; inflect itself answers for words that are not in the table.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import wordnet_splits
from wordnet_splits.benchmark.rules.keywords import lemma_index, plural_by_inflect, singular_by_inflect
from wordnet_splits.datasets.catalog import catalog_names, load_catalog

TABLE = Path(wordnet_splits.__file__).parent / "data" / "inflected.tsv"


LEFT_OUT = {"imagenet21k"}
"""Sources whose names are not in the table: ImageNet-21K's are a quarter of all nouns that WordNet has."""


def catalog_words() -> list[str]:
    """Return the words of all class names, and the singulars of those that are plurals, sorted."""
    sources = [source for source in catalog_names() if source not in LEFT_OUT]
    names = {c.name.casefold() for source in sources for c in load_catalog(source)}
    words = {word for name in names for word in re.split(r"[^\w]+|_", name) if word.isalpha()}
    index = lemma_index()
    return sorted(words | {singular for word in words for singular in index.singulars(word)})


def lines() -> list[str]:
    """Return the lines of the table."""
    rows = ((word, singular_by_inflect(word), plural_by_inflect(word)) for word in catalog_words())
    return [
        f"# by inflect {version('inflect')}, of the shipped catalogs: python -m tools.facts.inflections",
        "word\tsingular\tplural",
        *("\t".join(row) for row in rows),
    ]


if __name__ == "__main__":
    TABLE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
