"""Omniglot: 1,623 characters of 50 scripts, 20 drawings of each, in the publisher's zips or unpacked.

An id is ``<alphabet>/<character>/<number of the character>_<number of the drawer>``. The background set is
two splits: 8 scripts of the publisher's two small archives, which share Greek and Latin, and the other 22.

Reference: Lake, Salakhutdinov, Tenenbaum, Human-level concept learning through probabilistic program
induction, Science 2015.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.folders import class_folders
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.tars import archive
from wordnet_splits.sources.layouts.together import Together
from wordnet_splits.sources.layouts.walk import bases
from wordnet_splits.sources.layouts.zips import ZipFolders

SPLITS = ("background-small", "background-other", "evaluation")
STEM = r"\d{4}_\d{2}"


def _naming(*splits: str) -> Naming:
    return Naming("omniglot", splits, STEM, qualified=True)


SMALL = _naming("background-small")
BACKGROUND = _naming("background-small", "background-other")
EVALUATION = _naming("evaluation")


@register
class Omniglot(PartedSource):
    """19,280 background and 13,180 evaluation drawings, 105 x 105, dark on light."""

    name: ClassVar[str] = "omniglot"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    lossless: ClassVar[bool] = True
    looks_for: ClassVar[str] = (
        "images_background, images_background_small1, images_background_small2 or images_evaluation, "
        "zips or folders such as images_evaluation/Angelic/character01"
    )

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the background set, whole or small, and the evaluation set."""
        for base in bases(root, "omniglot-py", "omniglot"):
            background = _part(base, "images_background", root, BACKGROUND)
            small = (_part(base, f"images_background_small{n}", root, SMALL) for n in (1, 2))
            held = tuple(part for part in small if part is not None)
            if background is None and held:
                background = held[0] if len(held) == 1 else Together(held)
            evaluation = _part(base, "images_evaluation", root, EVALUATION)
            parts = tuple(part for part in (background, evaluation) if part is not None)
            if parts:
                return parts
        return ()


def _part(base: Path, name: str, root: Path, naming: Naming) -> SourcePart | None:
    """Return the folder of that name, else the archive."""
    folder = class_folders(base, name, root, naming)
    if folder is not None:
        return folder
    path = archive(base, f"{name}.zip", root)
    return None if path is None else ZipFolders(path, naming, name)
