"""How much two manifests have in common, group by group."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow.compute as pc

from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.diff import diff_manifests


@dataclass(frozen=True)
class InCommon:
    """Classes, or images of one split, that one group has in both manifests, or in only one of them."""

    group: str
    of: str
    both: int
    only_a: int
    only_b: int


def in_common(a: Manifest, b: Manifest) -> list[InCommon]:
    """Count what groups of the same name have in common: classes first, then images by split."""
    found = diff_manifests(a, b)
    only_a = _counted(found.classes.only_a) + _counted(found.images.only_a)
    only_b = _counted(found.classes.only_b) + _counted(found.images.only_b)
    in_a, in_b = _totals(a), _totals(b)
    return [
        InCommon(group, of, in_a[group, of] - only_a[group, of], only_a[group, of], only_b[group, of])
        for group, of in dict.fromkeys([*in_a, *in_b])
    ]


def _counted(rows: list[dict[str, str]]) -> Counter[tuple[str, str]]:
    return Counter((row["group"], row.get("split", "classes")) for row in rows)


def _totals(manifest: Manifest) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for group in dict.fromkeys(row.group for row in manifest.groups):
        found[group, "classes"] = pc.sum(pc.equal(manifest.classes["group"], group)).as_py()
    for split, group in manifest.parts:
        found[group, split] = manifest.parts[split, group]().num_rows
    return found
