"""The datasets that OpenOOD renumbered, as its ``images_classic`` folder holds them.

Their ids are OpenOOD's own names, so its image lists can be read without any other copy. MNIST and
SVHN keep the publisher's order in their names; CIFAR-10, CIFAR-100 and TIN-597 are numbered in an order that
is not published.

Reference: Zhang et al., OpenOOD v1.5: Enhanced Benchmark for Out-of-Distribution Detection, DMLR 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import CLASSIC, openood
from wordnet_splits.sources.layouts.folders import class_folders, flat_folder
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.walk import bases

CIFAR_STEM = r"\d{4}"  # from 0001, in every class of a split

PartOf = Callable[[Path, Path], SourcePart | None]
"""The part of one split in a folder, and the root."""


class OpenOod(PartedSource):
    """A folder of ``images_classic``, each split of which is a part."""

    folder: ClassVar[str]
    parts_of: ClassVar[tuple[PartOf, ...]]

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the splits, from the first folder that has one."""
        for base in bases(root, *openood(cls.folder, CLASSIC)):
            if parts := tuple(part for find in cls.parts_of if (part := find(base, root)) is not None):
                return parts
        return ()


def _classes(source: str, split: str, stem: str, inner: str = "", *, own_names: bool = False) -> PartOf:
    """Return a split in class folders; ``own_names`` are unique in it, others only within their class."""
    naming = Naming(source, (split,), stem, qualified=not own_names, prefix="" if own_names else f"{split}/")
    return lambda base, root: class_folders(base, split, root, naming, inner=(inner,))


def _flat(source: str, split: str, stem: str) -> PartOf:
    naming = Naming(source, (split,), stem, prefix=f"{split}/")
    return lambda base, root: flat_folder(base, split, root, naming)


@register
class OpenOodCifar10(OpenOod):
    """CIFAR-10 as PNG, numbered from 0001 in each class; in which order is not published."""

    name: ClassVar[str] = "openood-cifar10"
    splits: ClassVar[tuple[str, ...]] = ("train", "test")
    lossless: ClassVar[bool] = True
    looks_for: ClassVar[str] = "images_classic/cifar10/{train,test}/<class>/<4 digits>.png"
    folder: ClassVar[str] = "cifar10"
    parts_of: ClassVar[tuple[PartOf, ...]] = tuple(
        _classes("openood-cifar10", split, CIFAR_STEM) for split in ("train", "test")
    )


@register
class OpenOodCifar100(OpenOod):
    """CIFAR-100 as PNG, numbered from 0001 in each class; in which order is not published."""

    name: ClassVar[str] = "openood-cifar100"
    splits: ClassVar[tuple[str, ...]] = ("train", "test")
    lossless: ClassVar[bool] = True
    looks_for: ClassVar[str] = "images_classic/cifar100/{train,test}/<class>/<4 digits>.png"
    folder: ClassVar[str] = "cifar100"
    parts_of: ClassVar[tuple[PartOf, ...]] = tuple(
        _classes("openood-cifar100", split, CIFAR_STEM) for split in ("train", "test")
    )


@register
class OpenOodMnist(OpenOod):
    """MNIST as JPEG, so of other pixels: ``<digit>_<place in the publisher's file, from 0>``."""

    name: ClassVar[str] = "openood-mnist"
    splits: ClassVar[tuple[str, ...]] = ("train", "test")
    looks_for: ClassVar[str] = "images_classic/mnist/{train,test}/<digit>_<number>.jpg"
    folder: ClassVar[str] = "mnist"
    parts_of: ClassVar[tuple[PartOf, ...]] = tuple(
        _flat("openood-mnist", split, r"(?P<class>\d)_\d{1,5}") for split in ("train", "test")
    )


@register
class OpenOodSvhn(OpenOod):
    """SVHN's test part as JPEG, so of other pixels: ``<place in the publisher's file, from 1>_<digit>``."""

    name: ClassVar[str] = "openood-svhn"
    splits: ClassVar[tuple[str, ...]] = ("test",)
    looks_for: ClassVar[str] = "images_classic/svhn/test/<6 digits>_<digit>.jpg"
    folder: ClassVar[str] = "svhn"
    parts_of: ClassVar[tuple[PartOf, ...]] = (_flat("openood-svhn", "test", r"\d{6}_(?P<class>\d)"),)


@register
class OpenOodTin597(OpenOod):
    """TIN-597: 50 pictures of 597 classes of ImageNet, 64 x 64, numbered from 0 in each class."""

    name: ClassVar[str] = "openood-tin597"
    splits: ClassVar[tuple[str, ...]] = ("test",)
    looks_for: ClassVar[str] = "images_classic/tin597/test/<wnid>/images/<wnid>_<number>.JPEG"
    folder: ClassVar[str] = "tin597"
    parts_of: ClassVar[tuple[PartOf, ...]] = (
        _classes("openood-tin597", "test", r"(?P<class>n\d{8})_\d{1,2}", "images", own_names=True),
    )
