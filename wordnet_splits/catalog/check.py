"""Check the synsets of catalogs: do they exist, and what would a naive mapping by first sense have given?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from wordnet_splits.base.tabular import Records
from wordnet_splits.catalog.catalog import (
    MAPPED,
    Catalog,
    CatalogClass,
    catalog_names,
    load_catalog,
    read_catalog,
)
from wordnet_splits.taxonomy import Taxonomy

OWN = ".tsv"
_OLD_CALTECH = re.compile(r"-101$")  # Caltech-256 marks the classes it took over from Caltech-101


@dataclass(frozen=True)
class NaiveWrong:
    """A class whose name's first noun sense is not the one that is meant.

    ``naive`` is that first sense, ``ours`` the catalog's synsets, space-separated; the glosses are
    their first definitions.
    """

    class_id: str
    name: str
    naive: str
    naive_gloss: str
    ours: str
    ours_gloss: str


@dataclass(frozen=True)
class CatalogReport:
    """What the check of one catalog found.

    ``mapped`` counts the classes of each kind ("" where there is no synset), ``unmapped`` are the latter's
    ids, ``absent`` the pairs (class_id, wnid) that this WordNet does not hold, ``naive_wrong`` the names that
    first sense gets wrong, ``naive_nothing`` the ids of mapped classes whose name is not a noun in WordNet.
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
    names: Sequence[str] | None = None, taxonomy: Taxonomy | None = None
) -> Records[CatalogReport]:
    """Check catalogs against a taxonomy, in the order given.

    Parameters
    ----------
    names : sources, or files of own catalogs (``my.tsv``); all shipped catalogs by default. UnknownNameError
        where a source has no catalog, DataError where a file is malformed.
    taxonomy : the embedded WordNet 3.0 by default.
    """
    taxonomy = taxonomy or Taxonomy.embedded()
    chosen = catalog_names() if names is None else names
    return Records(
        check_catalog(read_catalog(n) if n.endswith(OWN) else load_catalog(n), taxonomy) for n in chosen
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
            wrong.append(_naive_wrong(item, naive, taxonomy))
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

    This is what a script without judgement would take: the name without its qualifier after ``/``, as it is
    written, else with underscores for hyphens.
    """
    name = _OLD_CALTECH.sub("", item.name.split("/")[0]).replace(" ", "_")
    for spelling in dict.fromkeys((name, name.replace("-", "_"))):
        senses = taxonomy.senses(spelling)
        if senses:
            return senses[0]
    return None


def _naive_wrong(item: CatalogClass, naive: str, taxonomy: Taxonomy) -> NaiveWrong:
    ours = "; ".join(taxonomy.first_definition(w) for w in item.wnids if w in taxonomy)
    return NaiveWrong(
        item.class_id, item.name, naive, taxonomy.first_definition(naive), " ".join(item.wnids), ours
    )
