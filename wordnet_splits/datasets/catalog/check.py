"""Check of the synsets of catalogs: whether they exist, and where a mapping by first sense would go wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from wordnet_splits.base.tabular import Records
from wordnet_splits.datasets.catalog.table import (
    MAPPED,
    Catalog,
    CatalogClass,
    catalog_names,
    load_catalog,
    read_catalog,
)
from wordnet_splits.wordnet.taxonomy import Taxonomy, load

_OLD_CALTECH = re.compile(r"-101$")  # Caltech-256 marks the classes it took over from Caltech-101


@dataclass(frozen=True)
class NaiveWrong:
    """A class whose name has another first noun sense than the catalog's synsets.

    ``naive`` is the first sense, ``ours`` the catalog's synsets, separated by spaces; the glosses are
    first definitions.
    """

    class_id: str
    name: str
    naive: str
    naive_gloss: str
    ours: str
    ours_gloss: str


@dataclass(frozen=True)
class CatalogReport:
    """Result of the check of a catalog.

    ``mapped`` counts the classes of each kind (``""`` for classes without a synset), ``unmapped`` has their
    ids, ``absent`` the pairs (class_id, wnid) that this WordNet lacks, ``naive_wrong``
    the classes that the first sense gets wrong, ``naive_nothing`` the ids of mapped classes whose name is not
    a noun in WordNet.
    """

    source: str
    classes: int
    mapped: dict[str, int]
    unmapped: tuple[str, ...]
    absent: tuple[tuple[str, str], ...]
    naive_wrong: tuple[NaiveWrong, ...]
    naive_nothing: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every synset exists."""
        return not self.absent


def check_catalogs(
    names: Sequence[str] | None = None, taxonomy: Taxonomy | str | None = None
) -> Records[CatalogReport]:
    """Check catalogs against a taxonomy, in the order given.

    Parameters
    ----------
    names : sources, or catalog files (``my.tsv``); all shipped catalogs by default.
    taxonomy : the embedded WordNet 3.0 by default.

    Raises
    ------
    UnknownNameError : a source has no catalog.
    DataError : a file is malformed.
    """
    taxonomy = load(taxonomy)
    read = partial(read_catalog, has_nodes=not taxonomy.is_wordnet)
    return Records(
        check_catalog(read(name) if name.endswith(".tsv") else load_catalog(name), taxonomy)
        for name in (catalog_names() if names is None else names)
    )


def check_catalog(catalog: Catalog, taxonomy: Taxonomy) -> CatalogReport:
    """Check one catalog against a taxonomy."""
    kinds = Counter(c.mapped for c in catalog)
    wrong: list[NaiveWrong] = []
    nothing: list[str] = []
    for item in catalog:
        naive = naive_sense(item, taxonomy)
        if naive is None:
            nothing += [item.class_id] if item.wnids else []
        elif item.wnids and naive not in item.wnids:
            glosses = "; ".join(taxonomy.first_definition(w) for w in item.wnids if w in taxonomy)
            naive_gloss, ours = taxonomy.first_definition(naive), " ".join(item.wnids)
            wrong.append(NaiveWrong(item.class_id, item.name, naive, naive_gloss, ours, glosses))
    return CatalogReport(
        source=catalog.source,
        classes=len(catalog),
        mapped={kind: kinds[kind] for kind in (*MAPPED, "") if kinds[kind]},
        unmapped=tuple(c.class_id for c in catalog if not c.wnids),
        absent=tuple((c.class_id, w) for c in catalog for w in c.wnids if w not in taxonomy),
        naive_wrong=tuple(wrong),
        naive_nothing=tuple(nothing),
    )


def naive_sense(item: CatalogClass, taxonomy: Taxonomy) -> str | None:
    """Return the first noun sense of a class name, None where it has none.

    A script would take it: the sense of the name without its qualifier after ``/``, as it is written, else
    with underscores for hyphens.
    """
    name = _OLD_CALTECH.sub("", item.name.split("/")[0]).replace(" ", "_")
    for spelling in dict.fromkeys((name, name.replace("-", "_"))):
        senses = taxonomy.senses(spelling)
        if senses:
            return senses[0]
    return None
