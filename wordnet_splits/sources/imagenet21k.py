"""ImageNet-21K, in the release of fall 2011 or of winter 2021: ``<wnid>/<wnid>_<number>.JPEG``.

A root is one release. It is fall 2011 if it holds a class known to be in no other, winter 2021 if it holds
most classes known to be in both and none of those, else too few to tell; the archives say it themselves.

Reference: Deng et al., ImageNet: A Large-Scale Hierarchical Image Database, CVPR 2009.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.catalog import load_catalog
from wordnet_splits.sources.base import Row, register
from wordnet_splits.sources.layouts.declared import openood
from wordnet_splits.sources.layouts.folders import ClassFolders, class_folders
from wordnet_splits.sources.layouts.names import Naming
from wordnet_splits.sources.layouts.parts import PartedSource, SourcePart
from wordnet_splits.sources.layouts.tars import NestedTar, archive
from wordnet_splits.sources.layouts.walk import bases

FALL, WINTER = RELEASES = ("fall11", "winter21")
ARCHIVES = {FALL: "fall11_whole.tar", WINTER: "winter21_whole.tar"}
STEM = r"(?P<class>n\d{8})_\d+"


class OfImageNet21K(PartedSource):
    """Class folders of ImageNet-21K, all of them or a selection; the publisher's splits are its releases.

    The catalog's ``superclass`` names the releases that a class is known to be in.
    """

    splits: ClassVar[tuple[str, ...]] = RELEASES
    begins: ClassVar[tuple[str, ...]]

    @classmethod
    def find(cls, root: Path) -> tuple[SourcePart, ...]:
        """Return the class folders, or the publisher's archive of archives."""
        naming = Naming(cls.name, (FALL,), STEM)
        for base in bases(root, *cls.begins):
            if part := class_folders(base, "", root, naming):
                return (part,)
            for release, name in ARCHIVES.items():
                if path := archive(base, name, root):
                    return (NestedTar(path, replace(naming, splits=(release,))),)
        return ()

    @classmethod
    def certain(cls, root: Path) -> bool:
        """Return whether the root has a class that ImageNet-1K lacks: it has folders of the same form."""
        (part,) = cls.find(root) or (None,)
        if not isinstance(part, ClassFolders):
            return part is not None
        known = load_catalog("imagenet1k")
        held = (class_id for class_id, _ in part.classes() if class_id is not None)
        return super().certain(root) and any(class_id not in known for class_id in held)

    @property
    def release(self) -> str | None:
        """The release that the root is, None where it holds too few classes to tell."""
        return self.cached("release", lambda: _release_of(self.name, self.parts[0]))

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield the images of the root's release; another release is refused by name.

        Of a root that may be either, what is asked for is yielded, as fall 2011 where both are.
        """
        wanted = [split for split in self.splits if split in splits]
        held = self.release or wanted[0]
        if held not in wanted:
            raise SourceError(
                f"this is the {held} release of ImageNet-21K, not {wanted[0]}",
                where=str(self.root),
                hint=f"give a root of the {wanted[0]} release to {self.name}",
            )
        for image_id, class_id, _ in super().rows((self.parts[0].naming.splits[0],)):
            yield image_id, class_id, held

    def missing(self, image_id: str, why: str = "is not there") -> MissingImageError:
        """Build the error for an absent image, saying so where its class is not in the root's release."""
        class_id = image_id.partition("_")[0]
        if self.release == WINTER and class_id in _known_in(self.name)[0]:
            why = f"is of a class that only the {FALL} release has, and this root is {WINTER}"
        return super().missing(image_id, why)


@register
class ImageNet21K(OfImageNet21K):
    """21,841 synsets in fall 2011; winter 2021 has fewer of its persons."""

    name: ClassVar[str] = "imagenet21k"
    looks_for: ClassVar[str] = f"<wnid>/<wnid>_<number>.JPEG, {ARCHIVES[FALL]} or {ARCHIVES[WINTER]}"
    begins: ClassVar[tuple[str, ...]] = (
        "imagenet21k",
        "fall11_whole",
        "winter21_whole",
        *openood("imagenet_21k"),
    )


@cache
def _known_in(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the classes known to be in fall 2011 alone, and those known to be in both releases."""
    known: dict[str, set[str]] = defaultdict(set)
    for item in load_catalog(source):
        known[item.superclass].add(item.class_id)
    return frozenset(known[FALL]), frozenset(known[" ".join(RELEASES)])


def _release_of(source: str, part: SourcePart) -> str | None:
    if not isinstance(part, ClassFolders):
        return part.naming.splits[0]
    alone, both = _known_in(source)
    held = {class_id for class_id, _ in part.classes() if class_id is not None}
    if held & alone:
        return FALL
    return WINTER if 2 * len(held & both) > len(both) else None
