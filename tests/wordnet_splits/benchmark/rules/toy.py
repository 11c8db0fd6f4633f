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

SYNSETS = (  # number, parent, lemmas
    (1, None, ["thing"]),
    (2, 1, ["animal"]),
    (3, 1, ["tool"]),
    (10, 2, ["dog"]),
    (11, 10, ["toy_dog"]),
    (12, 10, ["wolfhound"]),
    (20, 2, ["cat"]),
    (30, 3, ["knife"]),
    (31, 3, ["spoon", "ladle"]),
    (32, 3, ["house_dog", "tabby"]),
    (101, 11, ["pug", "pug-dog"]),
    (102, 11, ["Chihuahua"]),
    (103, 12, ["borzoi"]),
    (104, 20, ["tabby"]),
    (105, 30, ["cleaver"]),
)
PETS = ("pug", "chihuahua", "borzoi", "tabby", "cleaver", "cloud")
"""The classes of the source ``pets``; ``cloud`` has no synset."""

THING = "n00000001"
"""The synset of the classes of ``words``, whose names alone matter."""

TAXONOMY = Taxonomy.from_edges(
    {f"n{n:08}": [f"n{parent:08}"] for n, parent, _ in SYNSETS if parent},
    lemmas={f"n{n:08}": lemmas for n, _, lemmas in SYNSETS},
)


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
        [(name, THING, "") for name in ("pug", "toys", "chihuahuas/indoor", "knife", "cloud", "cloud/pug")],
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
