"""How much two manifests have in common, group by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from wordnet_splits.manifest import Manifest


@dataclass(frozen=True)
class InCommon:
    """Classes, or images of one split, that one group has in both manifests, or in only one of them."""

    group: str
    of: str
    both: int
    only_a: int
    only_b: int


def in_common(a: Manifest, b: Manifest, *, merged: Mapping[str, str] | None = None) -> list[InCommon]:
    """Count what groups of the same name have in common: classes first, then images by split.

    Parameters
    ----------
    merged : the name to take for a group of ``a``; several may become one.
    """
    in_a, in_b = _members(a, merged or {}), _members(b, {})
    return [
        InCommon(
            group,
            of,
            len(in_a[group, of] & in_b[group, of]),
            len(in_a[group, of] - in_b[group, of]),
            len(in_b[group, of] - in_a[group, of]),
        )
        for group, of in dict.fromkeys([*in_a, *in_b])
    ]


Key = tuple[str, str]


def _members(manifest: Manifest, merged: Mapping[str, str]) -> defaultdict[Key, set[Key]]:
    """Return (source, class_id) or (source, image_id) of each group, by group and "classes" or split."""
    members: defaultdict[Key, set[Key]] = defaultdict(set)
    for row in manifest.groups:
        members[merged.get(row.group, row.group), "classes"] |= set()
    names = (manifest.classes[name].to_pylist() for name in ("group", "source", "class_id"))
    for group, source, class_id in zip(*names, strict=True):
        if group:
            members[merged.get(group, group), "classes"].add((source, class_id))
    for split, group in manifest.parts:
        table = manifest.parts[split, group]()
        ids = (table[name].to_pylist() for name in ("source", "image_id"))
        members[merged.get(group, group), split] |= set(zip(*ids, strict=True))
    return members
