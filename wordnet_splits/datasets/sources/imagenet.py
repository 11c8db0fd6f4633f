"""ImageNet-1K (ILSVRC 2012) in every common layout, ImageNet-C, ImageNet-ES, ImageNet-21K and SSB-hard.

A root of ImageNet-21K is the release of fall 2011 if it has a class of that release only, and the release of
winter 2021 if it has no such class and most classes of both releases; otherwise it has too few classes to
decide. The archives have the release in their names. SSB-hard is a selection of its classes.

References: Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015; Hendrycks and
Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and Perturbations, ICLR 2019; Baek,
Park, Kim, Kim, Unexplored Faces of Robustness and Out-of-Distribution: Covariate Shifts in Environment and
Sensor Domains, CVPR 2024; Deng et al., ImageNet: A Large-Scale Hierarchical Image Database, CVPR 2009; Vaze,
Han, Vedaldi, Zisserman, Open-Set Recognition: A Good Closed-Set Classifier is All You Need?, ICLR 2022.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

from fix_resize.decode import size_of
from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources.layouts.archives import FlatTar, NestedTar, find_archive
from wordnet_splits.datasets.sources.layouts.catalog_folders import (
    ClassFolders,
    FolderFiles,
    find_class_folders,
    find_flat_folder,
)
from wordnet_splits.datasets.sources.layouts.layout import CompositeLayout, Layout, Row
from wordnet_splits.datasets.sources.layouts.named_files import NamedFiles, Naming
from wordnet_splits.datasets.sources.layouts.parquet_files import find_named_rows
from wordnet_splits.datasets.sources.layouts.walk import bases
from wordnet_splits.datasets.sources.source import Source, register_source

# Tiny ImageNet numbers its images 0..499 in each class, ImageNet up to five digits.
DISTINCTIVE = r"n\d{8}_0*(?:[5-9]\d{2}|[1-9]\d{3,})"
TRAIN = Naming("imagenet1k", ("train",), r"(?P<class>n\d{8})_\d+", distinctive=DISTINCTIVE)
VAL = Naming("imagenet1k", ("val",), r"ILSVRC2012_val_\d{8}")

KAGGLE = "CLS-LOC"
BEGINS = (
    "ILSVRC/Data/CLS-LOC",
    "Data/CLS-LOC",
    KAGGLE,
    "imagenet",
    "ILSVRC2012",
    "imagenet_1k",
    "images_largescale/imagenet_1k",
)
HUB_SUFFIX = r"_n\d{8}"  # the Hub appends the class: n01440764_10026_n01440764.JPEG
SMALL, SIZED = (224, 224), 8  # width and height of ImageNet-C's images; how many images are measured

# The publisher's archives of ImageNet-C and the corruptions in each. The fifteen of the benchmark are the
# split "standard"; the four of extra.tar, meant for choosing hyperparameters, are "extra".
ARCHIVES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
        "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
        "weather": ("frost", "snow", "fog", "brightness"),
        "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
        "extra": ("gaussian_blur", "saturate", "spatter", "speckle_noise"),
    }
)
SEVERITIES = range(1, 6)
CORRUPTED_FOLDERS = frozenset(f"{c}/{n}" for names in ARCHIVES.values() for c in names for n in SEVERITIES)
"""Folders of a corruption and severity, each laid out like an ImageNet folder."""
SHOTS: Mapping[str, int] = MappingProxyType({"auto_exposure": 5, "param_control": 27})
PHOTOGRAPHED_FOLDERS = tuple(
    f"{kind}/{light}/param_{n}"
    for kind, count in SHOTS.items()
    for light in ("l1", "l5")
    for n in range(1, count + 1)
)
"""Folders of ImageNet-ES, one for each light and camera setting, each laid out like an ImageNet folder."""


@register_source
class ImageNet1K(Source):
    """1,281,167 train and 50,000 validation images of 1,000 synsets."""

    name: ClassVar[str] = "imagenet1k"
    splits: ClassVar[tuple[str, ...]] = ("train", "val")
    expected_files: ClassVar[str] = (
        "train/<wnid>/*.JPEG or val/<wnid>/*.JPEG (torchvision), ILSVRC/Data/CLS-LOC (Kaggle), "
        "train-*.parquet or validation-*.parquet (Hub), ILSVRC2012_img_train.tar or ILSVRC2012_img_val.tar, "
        "or ILSVRC2012_val_*.JPEG flat"
    )

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the train part, the validation part or both, of the first place that has one."""
        for base in bases(root, *BEGINS):
            if "/".join(base.parts[-2:]) in CORRUPTED_FOLDERS or _is_photographed(base):
                continue
            parts = [part for part in (_train(base, root), _val(base, root)) if part]
            if not parts and (lone := _lone(base, root)):
                parts = [lone]
            if parts:
                yield CompositeLayout(parts)
                return

    @classmethod
    def open(cls, root: Path | None, layout: Layout, **params: Any) -> Self:
        """Return the source over the parts that were found.

        Raises SourceError if the validation folder has resized images.
        """
        for part in layout.layouts if isinstance(layout, CompositeLayout) else ():
            if isinstance(part, FolderFiles) and part.naming == VAL and _made_small(part):
                message = "the validation images are of 224 x 224 pixels, as ImageNet-C's and resized copies"
                hint = "give the publisher's files; a folder of ImageNet-C is a root of imagenet-c"
                raise SourceError(message, where=str(part.path), hint=hint)
        return super().open(root, layout, **params)


def _made_small(part: FolderFiles) -> bool:
    """Return whether a sample of images have the size of ImageNet-C's: both datasets use equal names."""
    sample = list(islice(part.images(lambda name: None, VAL.splits), SIZED))
    try:
        sizes = {size_of(part.read(image.location)) for image in sample}
    except (SourceError, KeyError, OSError):
        return False  # reading the image raises the error
    return len(sample) == SIZED and sizes == {SMALL}


def _train(base: Path, root: Path) -> NamedFiles | None:
    for folder in ("train", "ILSVRC2012_img_train"):
        if part := find_class_folders(base, folder, root, TRAIN, name=_folders_name(base)):
            return part
    if path := find_archive(base, "ILSVRC2012_img_train.tar", root):
        return NestedTar(path, TRAIN)
    return find_named_rows(base, root, "train", TRAIN, HUB_SUFFIX)


def _val(base: Path, root: Path) -> NamedFiles | None:
    flat_name = "kaggle" if base.name == KAGGLE else "flat"
    for folder in ("val", "ILSVRC2012_img_val"):
        part = find_flat_folder(base, folder, root, VAL, flat_name) or find_class_folders(
            base, folder, root, VAL, name=_folders_name(base)
        )
        if part:
            return part
    if path := find_archive(base, "ILSVRC2012_img_val.tar", root):
        return FlatTar(path, VAL)
    rows = find_named_rows(base, root, "val", VAL, HUB_SUFFIX)
    return rows or find_flat_folder(base, "", root, VAL, flat_name)


def _lone(base: Path, root: Path) -> NamedFiles | None:
    """Return ``base`` itself as a part if it is a train folder or a sorted validation folder."""
    part = find_class_folders(base, "", root, VAL)
    return part if part is None or part.is_unambiguous() else ClassFolders(base, root, TRAIN)


def _folders_name(base: Path) -> str:
    return "kaggle" if base.name == KAGGLE else "folders"


@dataclass(frozen=True)
class Corrupted(Naming):
    """The names of ImageNet's validation images under the corruption that is their ``prefix``."""

    def row(self, class_id: str | None, stem: str) -> Row | None:
        """Return the row of the same file in ImageNet, under this corruption's id."""
        row = VAL.row(class_id, stem)
        return None if row is None else (self.prefix + row[0], row[1], self.splits[0])

    def locate(self, image_id: str) -> tuple[str, str]:
        """Return (class_id, stem) of an id of this corruption, KeyError for any other."""
        if not image_id.startswith(self.prefix):
            raise KeyError(image_id)
        return VAL.locate(image_id.removeprefix(self.prefix))


@register_source
class ImageNetC(Source):
    """50,000 images for each of 19 corruptions and 5 severities, or some of these.

    Ids are ``<corruption>/<severity>/ILSVRC2012_val_00000293``. ImageNet's inventory has the images and their
    classes, so none is shipped.
    """

    name: ClassVar[str] = "imagenet-c"
    splits: ClassVar[tuple[str, ...]] = ("standard", "extra")
    expected_files: ClassVar[str] = "<corruption>/<1..5>/<wnid>/ILSVRC2012_val_*.JPEG, as in fog/1"

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield a part for each corruption and severity of the first place that has one."""
        begins = ("imagenet-c", "ImageNet-C", "imagenet_c", "images_largescale/imagenet_c")
        for base in bases(root, *begins):
            if parts := list(_corrupted_parts(base, root)):
                yield CompositeLayout(parts)
                return

    @classmethod
    def class_of(cls, image_id: str) -> str | None:
        """Return the class of the original of a corrupted image; KeyError for an impossible id."""
        folder, _, stem = image_id.rpartition("/")
        if folder not in CORRUPTED_FOLDERS:
            raise KeyError(image_id)
        return VAL.locate(stem)[0]


def _corrupted_parts(base: Path, root: Path) -> Iterator[NamedFiles]:
    for archive, corruptions in ARCHIVES.items():
        split = "extra" if archive == "extra" else "standard"
        for corruption in corruptions:
            for severity in SEVERITIES:
                naming = Corrupted("imagenet-c", (split,), VAL.stem, prefix=f"{corruption}/{severity}/")
                for folder in _corrupted_folders(base, archive, corruption, severity):
                    part = find_class_folders(base, folder, root, naming) or find_flat_folder(
                        base, folder, root, naming
                    )
                    if part is not None:
                        yield part
                        break


def _corrupted_folders(base: Path, archive: str, corruption: str, severity: int) -> Iterator[str]:
    """Yield the folders below ``base`` that may hold the images; ``base`` itself may hold them."""
    yield from (f"{corruption}/{severity}", f"{archive}/{corruption}/{severity}")
    if base.name == corruption:
        yield str(severity)
    if base.parts[-2:] == (corruption, str(severity)):
        yield ""


def _is_photographed(base: Path) -> bool:
    """Return whether a folder is one of ImageNet-ES, of its validation part too: it uses ImageNet's names."""
    kind, light, setting = ("", "", "", *base.parts)[-3:]
    return kind in SHOTS and light.startswith("l") and setting.startswith("param_")


@register_source
class ImageNetES(Source):
    """1,000 validation images of ImageNet, photographed in 2 lights and 32 camera settings.

    Ids are ``<kind>/<light>/param_<n>/ILSVRC2012_val_00000293`` with the kinds of `SHOTS`. The publisher's
    ``es-val`` has other originals and is not read.
    """

    name: ClassVar[str] = "imagenet-es"
    splits: ClassVar[tuple[str, ...]] = ("test",)
    expected_files: ClassVar[str] = (
        "es-test/{auto_exposure,param_control}/<l1 or l5>/param_<n>/<wnid>/ILSVRC2012_val_*.JPEG"
    )

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield a part for each setting of the first place that has one."""
        begins = (
            "es-test",
            "ImageNet-ES/es-test",
            "imagenet_es/es-test",
            "images_largescale/imagenet_es/es-test",
        )
        for base in bases(root, *begins):
            found = (
                find_class_folders(
                    base, folder, root, Naming(cls.name, cls.splits, VAL.stem, prefix=f"{folder}/")
                )
                for folder in PHOTOGRAPHED_FOLDERS
            )
            if parts := [part for part in found if part is not None]:
                yield CompositeLayout(parts)
                return


FALL, WINTER = RELEASES = ("fall11", "winter21")
WHOLE_TARS = {FALL: "fall11_whole.tar", WINTER: "winter21_whole.tar"}
STEM = r"(?P<class>n\d{8})_\d+"


class SynsetFolders(Source):
    """Class folders of ImageNet-21K, complete or a selection; the publisher's splits are its releases.

    The catalog's ``superclass`` names the releases that have a class.
    """

    splits: ClassVar[tuple[str, ...]] = RELEASES
    begins: ClassVar[tuple[str, ...]]
    storage: NamedFiles

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield the class folders, or the publisher's archive of archives."""
        for base in bases(root, *cls.begins):
            folders = find_class_folders(base, "", root, Naming(cls.name, (FALL,), STEM))
            if folders:
                yield folders
                return
            for release, name in WHOLE_TARS.items():
                if path := find_archive(base, name, root):
                    yield NestedTar(path, Naming(cls.name, (release,), STEM))
                    return

    @classmethod
    def is_unambiguous(cls, root: Path) -> bool:
        """Return whether the root has a class that ImageNet-1K lacks: it has folders of the same form."""
        layout = next(cls.layouts(root), None)
        if not isinstance(layout, ClassFolders):
            return layout is not None
        imagenet1k = load_catalog("imagenet1k")
        classes = (class_id for class_id, _ in layout.class_folders() if class_id is not None)
        return layout.is_unambiguous() and any(class_id not in imagenet1k for class_id in classes)

    @property
    def release(self) -> str | None:
        """The release of the root, None if it has too few classes to decide."""
        return self.storage.cached("release", lambda: _release_of(self.name, self.storage))

    def rows(self, splits: Collection[str]) -> Iterator[Row]:
        """Yield the images of the root's release; another release is refused by name.

        A root that may be either is read as the requested release, or as fall 2011 if both are requested.
        """
        wanted_releases = [split for split in self.splits if split in splits]
        release = self.release or wanted_releases[0]
        if release not in wanted_releases:
            message = f"this is the {release} release of ImageNet-21K, not {wanted_releases[0]}"
            hint = f"give a root of the {wanted_releases[0]} release to {self.name}"
            raise SourceError(message, where=str(self.root), hint=hint)
        for image_id, class_id, _ in super().rows((self.storage.naming.splits[0],)):
            yield image_id, class_id, release

    def missing(self, image_id: str, why: str = "is not there") -> MissingImageError:
        """Build the error for an absent image; the message names a release that lacks its class."""
        class_id = image_id.partition("_")[0]
        if self.release == WINTER and class_id in _classes_by_release(self.name)[0]:
            why = f"is of a class that only the {FALL} release has, and this root is {WINTER}"
        return super().missing(image_id, why)


@register_source
class ImageNet21K(SynsetFolders):
    """21,841 synsets in fall 2011; winter 2021 has fewer of its persons."""

    name: ClassVar[str] = "imagenet21k"
    expected_files: ClassVar[str] = f"<wnid>/<wnid>_<number>.JPEG, {WHOLE_TARS[FALL]} or {WHOLE_TARS[WINTER]}"
    begins: ClassVar[tuple[str, ...]] = (
        "imagenet21k",
        "fall11_whole",
        "winter21_whole",
        "imagenet_21k",
        "images_largescale/imagenet_21k",
    )


@register_source
class SSBHard(SynsetFolders):
    """The 1,000 classes of ImageNet-21K most easily confused with ImageNet-1K; winter 2021 has 980.

    Read from OpenOOD's folders (50 images of each of the 980) or from a root of ImageNet-21K, whose other
    classes are ignored.
    """

    name: ClassVar[str] = "ssb-hard"
    expected_files: ClassVar[str] = "ssb_hard/<wnid>/<wnid>_<number>.JPEG with wnids such as n00470682"
    begins: ClassVar[tuple[str, ...]] = (
        "ssb_hard",
        "images_largescale/ssb_hard",
        "imagenet21k",
        "fall11_whole",
        "winter21_whole",
    )


@cache
def _classes_by_release(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the classes of fall 2011 alone, and the classes of both releases, as far as recorded."""
    classes: dict[str, set[str]] = defaultdict(set)
    for item in load_catalog(source):
        classes[item.superclass].add(item.class_id)
    return frozenset(classes[FALL]), frozenset(classes[" ".join(RELEASES)])


def _release_of(source: str, layout: NamedFiles) -> str | None:
    if not isinstance(layout, ClassFolders):
        return layout.naming.splits[0]
    fall_only, in_both = _classes_by_release(source)
    classes = {class_id for class_id, _ in layout.class_folders() if class_id is not None}
    if classes & fall_only:
        return FALL
    return WINTER if 2 * len(classes & in_both) > len(in_both) else None
