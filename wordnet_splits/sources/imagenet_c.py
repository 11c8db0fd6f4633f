"""ImageNet-C: ImageNet's validation images corrupted, ``<corruption>/<1..5>/<wnid>/ILSVRC2012_val_*.JPEG``.

Ids are ``<corruption>/<severity>/ILSVRC2012_val_00000293``: which there are and of which class, ImageNet's
own inventory says, so none is shipped.

Reference: Hendrycks and Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations, ICLR 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import Row, register
from wordnet_splits.sources.imagenet1k import VAL
from wordnet_splits.sources.layouts.corruptions import ARCHIVES, FOLDERS, SEVERITIES
from wordnet_splits.sources.layouts.declared import openood
from wordnet_splits.sources.layouts.folders import class_folders, flat_folder
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.walk import bases


@dataclass(frozen=True)
class Corrupted(Naming):
    """The names of ImageNet's validation images under the corruption that is their ``prefix``."""

    def row(self, class_id: str | None, stem: str) -> Row | None:
        """Return what the same file is in ImageNet, under this corruption's id."""
        row = VAL.row(class_id, stem)
        return None if row is None else (self.prefix + row[0], row[1], self.splits[0])

    def place(self, image_id: str) -> tuple[str, str]:
        """Return (class_id, stem) of an id of this corruption, KeyError for any other."""
        if not image_id.startswith(self.prefix):
            raise KeyError(image_id)
        return VAL.place(image_id.removeprefix(self.prefix))


@register
class ImageNetC(PartedSource):
    """50,000 images for each of 19 corruptions and 5 severities, however many of these a root holds."""

    name: ClassVar[str] = "imagenet-c"
    splits: ClassVar[tuple[str, ...]] = ("standard", "extra")
    looks_for: ClassVar[str] = "<corruption>/<1..5>/<wnid>/ILSVRC2012_val_*.JPEG with corruptions such as fog"

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return a part for each corruption and severity of the first place that has one."""
        for base in bases(root, "imagenet-c", "ImageNet-C", *openood("imagenet_c")):
            parts = tuple(_parts(base, root))
            if parts:
                return parts
        return ()

    @classmethod
    def class_of(cls, image_id: str) -> str | None:
        """Return the class of the image that is corrupted; KeyError where there is none."""
        below, _, stem = image_id.rpartition("/")
        if below not in FOLDERS:
            raise KeyError(image_id)
        return VAL.place(stem)[0]


def _parts(base: Path, root: Path) -> Iterator[SourcePart]:
    for archive, corruptions in ARCHIVES.items():
        split = "extra" if archive == "extra" else "standard"
        for corruption in corruptions:
            for severity in SEVERITIES:
                naming = Corrupted("imagenet-c", (split,), VAL.stem, prefix=f"{corruption}/{severity}/")
                for folder in _folders(base, archive, corruption, severity):
                    part = class_folders(base, folder, root, naming) or flat_folder(
                        base, folder, root, naming
                    )
                    if part is not None:
                        yield part
                        break


def _folders(base: Path, archive: str, corruption: str, severity: int) -> Iterator[str]:
    """Yield where below ``base`` the images may lie, which may itself be the folder of a corruption."""
    yield from (f"{corruption}/{severity}", f"{archive}/{corruption}/{severity}")
    if base.name == corruption:
        yield str(severity)
    if base.parts[-2:] == (corruption, str(severity)):
        yield ""
