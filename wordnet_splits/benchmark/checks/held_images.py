"""The share of a benchmark's test images that this machine has, under the roots of their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.datasets.sources import source_class
from wordnet_splits.metrics.summary import OOD_ROLES


@dataclass
class HeldImages:
    """The number of test images from a source, and of those at hand."""

    source: str
    held: int = 0
    expected: int = 0


@dataclass(frozen=True)
class Readiness(Jsonable):
    """The test images of a benchmark that are at hand. Image ids are compared, pixels are not.

    Attributes
    ----------
    sources : counts by source, in the order of groups; empty for a benchmark that is not frozen.
    awaits : sources of test images whose ids are not frozen.
    roles : roles with test images at hand.
    """

    derived: ClassVar = ("runs_here",)

    sources: tuple[HeldImages, ...] = ()
    awaits: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    @property
    def runs_here(self) -> str:
        """``yes``, ``partly (60 of 5,640 dtd)``, or ``no`` if there are no ID or no OOD images at hand."""
        if "id" not in self.roles or not set(OOD_ROLES) & set(self.roles):
            return "no"
        lacking = [f"{s.held:,} of {s.expected:,} {s.source}" for s in self.sources if s.held < s.expected]
        lacking += [f"awaits {source}" for source in self.awaits]
        more = f", {len(lacking) - 1} more" if len(lacking) > 1 else ""
        return f"partly ({lacking[0]}{more})" if lacking else "yes"


def count_held(manifest: Manifest, scanned: Mapping[str, pa.Array]) -> Readiness:
    """Count the test images of a benchmark that are at hand.

    Parameters
    ----------
    scanned : image ids under the root of each source; sources without a usable root are absent.
    """
    counts: dict[str, HeldImages] = {}
    roles = set()
    for row in manifest.groups:
        if row.split != "test" or ("test", row.group) not in manifest.parts:
            continue
        count = counts.setdefault(row.source, HeldImages(row.source))
        held = _held(manifest, row.group, row.source, scanned)
        count.expected += row.actual or 0
        count.held += row.actual or 0 if held is None else held
        if held is None or held:
            roles.add(row.role)
    awaits = {row.source: None for row in manifest.groups if row.split == "test" and row.awaits}
    return Readiness(tuple(counts.values()), tuple(awaits), tuple(sorted(roles)))


def _held(manifest: Manifest, group: str, source: str, scanned: Mapping[str, pa.Array]) -> int | None:
    """Return the number of a group's test images at hand; None for a built-in source, which has all."""
    if source in scanned:
        ids = manifest.parts["test", group]()["image_id"]
        return int(pc.sum(pc.is_in(ids, value_set=scanned[source])).as_py() or 0)
    return 0 if source_class(source, manifest.datasets).rooted else None
