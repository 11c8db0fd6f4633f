"""What an import made, and how it compares with what was known before."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from wordnet_splits.base.errors import Problem
from wordnet_splits.exchange.archives.digest_matching import LeftOut
from wordnet_splits.exchange.entries import ListEntry
from wordnet_splits.exchange.overlap import InCommon
from wordnet_splits.manifest import Manifest


@dataclass
class Imported:
    """What `import_benchmark` made.

    Attributes
    ----------
    manifest : None where no group is ID, so that there are only lists.
    recipe : the recipe file, where the lists were somebody else's.
    lists : names of the lists, as recipes name them.
    expected : the fingerprint that the export noted, None where it did not or a group awaits its source.
    differences : what differs from the exported benchmark, a sentence each.
    unmatched : entries that name no image of a known source, or classes of groups without images.
    problems : images that a root lacks.
    left_out : of an archive, the ``unmatched`` pictures by set, and why.
    like, in_common : of an archive, our benchmark in its place, and what both have in common.
    also : the other benchmarks of one dataset.
    """

    name: str
    folder: Path
    manifest: Manifest | None
    recipe: Path | None = None
    lists: list[str] = field(default_factory=list)
    expected: str | None = None
    differences: list[str] = field(default_factory=list)
    unmatched: list[ListEntry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    like: str | None = None
    in_common: list[InCommon] = field(default_factory=list)
    also: list[Imported] = field(default_factory=list)

    @property
    def fingerprint(self) -> str | None:
        """Return the fingerprint of the images, None while a group awaits its source."""
        return None if self.manifest is None else self.manifest.fingerprint

    @property
    def same(self) -> bool:
        """Say whether nothing differs from the exported benchmark."""
        return not self.differences
