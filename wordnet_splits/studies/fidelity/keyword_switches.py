"""Number of classes that the keyword rule keeps with each of its switches, for the fidelity table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.benchmark.rules.context import Candidates
from wordnet_splits.benchmark.rules.keywords import KINDS, Compounds, MatchBy, Qualifiers, matches
from wordnet_splits.benchmark.rules.operators.names import relatives
from wordnet_splits.datasets.catalog import Catalog, load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy


@dataclass(frozen=True)
class Switch:
    """A setting of the keyword rule; in `SWITCHES` at most one field differs from its default."""

    name: str
    nodes: Literal["all", "subtree"] = "all"
    match: MatchBy = "token"
    qualifiers: Qualifiers = "drop"
    compounds: Compounds = "whole"
    kinds: Collection[str] = KINDS


SWITCHES: tuple[Switch, ...] = (
    Switch("default"),
    Switch("qualifiers kept", qualifiers="keep"),
    Switch("compounds split", compounds="split"),
    Switch("subtree only", nodes="subtree"),
    *(Switch(f"without {kind}", kinds=tuple(k for k in KINDS if k != kind)) for kind in KINDS),
)
"""The default, and each switch alone."""


@dataclass(frozen=True)
class SwitchRow:
    """Classes kept under a switch, by source, and the number of their images (None if not all are known)."""

    switch: str
    kept: dict[str, tuple[str, ...]]
    images: dict[str, int | None]

    def counts(self) -> dict[str, int]:
        """Return source -> number of kept classes."""
        return {source: len(classes) for source, classes in self.kept.items()}


def keyword_switches(
    sources: Sequence[str] = ("food101", "caltech256", "places365"),
    with_source: str = "imagenet1k",
    *,
    switches: Sequence[Switch] = SWITCHES,
    taxonomy: Taxonomy | None = None,
) -> tuple[SwitchRow, ...]:
    """Return which classes of each source overlap no class of ``with_source``, under each switch.

    The rule is ``{ not = { keyword_overlap = { with = "source:..." } } }``: see `keyword_overlap`.
    """
    taxonomy = taxonomy or Taxonomy.embedded()
    synsets = Candidates.by_synset(
        (wnid, (with_source, item.class_id)) for item in load_catalog(with_source) for wnid in item.wnids
    )
    near = {
        "all": relatives(synsets, taxonomy).keys(),
        "subtree": relatives(synsets, taxonomy, only_subtree=True).keys(),
    }
    rows = []
    for switch in switches:
        kept_classes = {s: _kept(load_catalog(s), switch, near[switch.nodes], taxonomy) for s in sources}
        images = {s: _images(load_catalog(s), classes) for s, classes in kept_classes.items()}
        rows.append(SwitchRow(switch.name, kept_classes, images))
    return tuple(rows)


def _kept(catalog: Catalog, switch: Switch, near: Collection[str], taxonomy: Taxonomy) -> tuple[str, ...]:
    def overlaps(name: str) -> bool:
        reached = matches(
            name,
            match=switch.match,
            qualifiers=switch.qualifiers,
            compounds=switch.compounds,
            kinds=switch.kinds,
            taxonomy=taxonomy,
        )
        return any(match.wnid in near for match in reached)

    return tuple(item.class_id for item in catalog if not overlaps(item.name))


def _images(catalog: Catalog, classes: Sequence[str]) -> int | None:
    """Return the images of the classes in all the publisher's splits, None unless each count is known."""
    total = 0
    for class_id in classes:
        for split in catalog.splits:
            count = catalog.count(class_id, split)
            if count is None:
                return None
            total += count
    return total


def switch_table(rows: Sequence[SwitchRow]) -> str:
    """Return the rows as aligned text: switch, classes kept per source, images in parentheses where known."""
    if not rows:
        raise SplitsError("no switch to show")
    sources = list(rows[0].kept)

    def cell(row: SwitchRow, source: str) -> str:
        images = row.images[source]
        return f"{len(row.kept[source])}" + ("" if images is None else f" ({images})")

    table = [["switch", *sources], *([row.switch, *(cell(row, s) for s in sources)] for row in rows)]
    widths = [max(len(line[n]) for line in table) for n in range(len(sources) + 1)]
    return "\n".join(
        "  ".join(t.ljust(w) for t, w in zip(line, widths, strict=True)).rstrip() for line in table
    )
