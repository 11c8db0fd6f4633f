"""A small world: a dozen synsets, two catalogs, and short ways to ask a rule about them.

thing (n00000001)
  animal (n00000002)
    dog (n00000010)
      toy_dog (n00000011)     pug (n00000101)  chihuahua (n00000102)
      wolfhound (n00000012)   borzoi (n00000103)
    cat (n00000020)           tabby (n00000104)
  tool (n00000003)
    knife (n00000030)         cleaver (n00000105)
    spoon, ladle (n00000031)
    house_dog (n00000032)     a tool by name only
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from wordnet_splits.base.errors import unknown
from wordnet_splits.benchmark.rules import ClassRule, Context, Verdict, decide
from wordnet_splits.datasets.catalog import Catalog, CatalogClass
from wordnet_splits.wordnet.taxonomy import Taxonomy

PARENTS = {
    "n00000002": ["n00000001"],
    "n00000003": ["n00000001"],
    "n00000010": ["n00000002"],
    "n00000011": ["n00000010"],
    "n00000012": ["n00000010"],
    "n00000020": ["n00000002"],
    "n00000030": ["n00000003"],
    "n00000031": ["n00000003"],
    "n00000032": ["n00000003"],
    "n00000101": ["n00000011"],
    "n00000102": ["n00000011"],
    "n00000103": ["n00000012"],
    "n00000104": ["n00000020"],
    "n00000105": ["n00000030"],
}
LEMMAS = {
    "n00000001": ["thing"],
    "n00000002": ["animal"],
    "n00000003": ["tool"],
    "n00000010": ["dog"],
    "n00000011": ["toy_dog"],
    "n00000012": ["wolfhound"],
    "n00000020": ["cat"],
    "n00000030": ["knife"],
    "n00000031": ["spoon", "ladle"],
    "n00000032": ["house_dog", "tabby"],
    "n00000101": ["pug", "pug-dog"],
    "n00000102": ["Chihuahua"],
    "n00000103": ["borzoi"],
    "n00000104": ["tabby"],
    "n00000105": ["cleaver"],
}
PETS = ("pug", "chihuahua", "borzoi", "tabby", "cleaver", "cloud")
"""The classes of the source ``pets``; ``cloud`` has no synset."""

THING = "n00000001"
"""The synset of the classes of ``words``, whose names alone matter."""

TAXONOMY = Taxonomy.from_edges(PARENTS, lemmas=LEMMAS)


def catalog(source: str, rows: Iterable[Sequence[str]]) -> Catalog:
    """Return a catalog of (class_id, wnids, superclass) rows, 10 images a class."""
    classes = tuple(
        CatalogClass(
            source=source,
            class_id=class_id,
            index=n,
            name=class_id,
            superclass=superclass,
            wnids=tuple(wnids.split()),
            mapped="exact" if wnids else "",
            why="",
            counts={"all": 10},
            count_group="",
        )
        for n, (class_id, wnids, superclass) in enumerate(rows)
    )
    return Catalog(source, classes, ("all",), (), {})


CATALOGS = {
    "pets": catalog(
        "pets",
        [
            ("pug", "n00000101", "dogs"),
            ("chihuahua", "n00000102", "dogs"),
            ("borzoi", "n00000103", "dogs"),
            ("tabby", "n00000104", "others"),
            ("cleaver", "n00000105", "others"),
            ("cloud", "", "others"),
        ],
    ),
    "drawer": catalog("drawer", [("knife", "n00000030", ""), ("ladle", "n00000031", "")]),
    "words": catalog(
        "words",
        [
            ("pug", THING, ""),
            ("toys", THING, ""),
            ("chihuahuas/indoor", THING, ""),
            ("knife", THING, ""),
            ("cloud", THING, ""),
            ("cloud/pug", THING, ""),
        ],
    ),
}


def load(source: str) -> Catalog:
    """Return a toy catalog."""
    if source not in CATALOGS:
        raise unknown("source", source, CATALOGS)
    return CATALOGS[source]


def published(name: str) -> pa.Table:
    """Return a toy list: two images of pug, one of tabby."""
    if name != "toys":
        raise unknown("list", name, ["toys"])
    return pa.table(
        {
            "source": ["pets", "pets", "pets"],
            "image_id": ["a", "b", "c"],
            "class_id": ["pug", "pug", "tabby"],
            "label": [0, 0, 1],
        }
    )


def context(**known: Any) -> Context:
    """Return a context over the toy world."""
    return Context(**{"taxonomy": TAXONOMY, "catalog": load, "published": published, "draw": "toy"} | known)


def judge(
    rule: dict[str, Any], source: str = "pets", offered: Sequence[str] | None = None, **known: Any
) -> dict[str, Verdict]:
    """Return the verdicts of a rule, over the whole catalog unless told otherwise."""
    candidates = [c.class_id for c in load(source)] if offered is None else offered
    return decide(ClassRule.model_validate(rule), source, candidates, context(**known))


def taken(
    rule: dict[str, Any], source: str = "pets", offered: Sequence[str] | None = None, **known: Any
) -> set[str]:
    """Return the classes that a rule accepts."""
    return {c for c, verdict in judge(rule, source, offered, **known).items() if verdict.accepted}
