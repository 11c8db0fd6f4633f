"""Omniglot: 1,623 characters of 50 scripts, 20 drawings of each, in the publisher's zips or unpacked.

An id is ``<alphabet>/<character>/<number of the character>_<number of the drawer>``. The background set is
two splits: 8 scripts of the publisher's two small archives, which share Greek and Latin, and the other 22.

Reference: Lake, Salakhutdinov, Tenenbaum, Human-level concept learning through probabilistic program
induction, Science 2015.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from wordnet_splits.datasets.sources.layouts.archives import ZipFolders, find_archive
from wordnet_splits.datasets.sources.layouts.catalog_folders import find_class_folders
from wordnet_splits.datasets.sources.layouts.layout import CompositeLayout, Layout
from wordnet_splits.datasets.sources.layouts.named_files import NamedFiles, Naming, OverlappingFiles
from wordnet_splits.datasets.sources.layouts.walk import bases
from wordnet_splits.datasets.sources.source import Source, register_source

SMALL, OTHER, EVALUATION = SPLITS = ("background-small", "background-other", "evaluation")


@register_source
class Omniglot(Source):
    """19,280 background and 13,180 evaluation drawings, 105 x 105, dark on light."""

    name: ClassVar[str] = "omniglot"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    lossless: ClassVar[bool] = True
    expected_files: ClassVar[str] = (
        "images_background, images_background_small1, images_background_small2 or images_evaluation, "
        "zips or folders such as images_evaluation/Angelic/character01"
    )

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the background set, whole or small, and the evaluation set."""
        for base in bases(root, "omniglot-py", "omniglot"):
            background = _part(base, "images_background", root, SMALL, OTHER)
            if background is None:
                names = ("images_background_small1", "images_background_small2")
                small = [part for name in names if (part := _part(base, name, root, SMALL))]
                background = OverlappingFiles(tuple(small)) if len(small) > 1 else next(iter(small), None)
            evaluation = _part(base, "images_evaluation", root, EVALUATION)
            if parts := [part for part in (background, evaluation) if part is not None]:
                yield CompositeLayout(parts)
                return


def _part(base: Path, name: str, root: Path, *splits: str) -> NamedFiles | None:
    """Return the folder of that name, else the archive."""
    naming = Naming("omniglot", splits, r"\d{4}_\d{2}", qualified=True)
    folder = find_class_folders(base, name, root, naming)
    if folder is not None:
        return folder
    path = find_archive(base, f"{name}.zip", root)
    return None if path is None else ZipFolders(path, naming, name)
