"""Every bad root: one clear line that says what was looked for, where, and how to get it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits.datasets.sources.every_layout import EVERY
from tests.wordnet_splits.datasets.sources.layout_table import DTD, OPENOOD, TAKEN_FOR, files
from tests.wordnet_splits.datasets.sources.trees import (
    IMAGENET_TRAIN,
    IMAGENET_VAL,
    Write,
    flat,
    hub_shards,
    in_class_folders,
    jpeg,
    link,
    some,
    tar_bytes,
    write_images,
)
from wordnet_splits.base import errors
from wordnet_splits.datasets.sources import open_source, source_class, source_names
from wordnet_splits.datasets.sources.layouts.walk import entries

IN_FILES = (
    *("imagenet1k", "tiny-imagenet", "food101", "caltech256", "places365", "sun397", "dtd"),
    *OPENOOD,
    *TAKEN_FOR,
)
OF_21K = ("imagenet21k", "ssb-hard")
TRAIN_ID = min(IMAGENET_TRAIN)[0]


def refused(name: str, root: Path, error: type[errors.SplitsError] = errors.SourceError) -> str:
    """The one line with which a root is refused, on opening or on scanning."""
    with pytest.raises(error) as caught:
        list(open_source(name, root).scan())
    message = str(caught.value)
    assert "\n" not in message
    assert str(root) in message
    return message


def dtd(root: Path) -> Path:
    write_images(root, in_class_folders(DTD, "images", extension="jpg"))
    return root


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    archive = tmp_path / "dtd-r1.0.1.tar.gz"
    archive.write_bytes(b"\x1f\x8b")
    assert refused("dtd", archive)


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = dtd(tmp_path / "root")
    listed, denied = os.scandir, ""

    def guarded(path: object) -> object:  # chmod does not stop the administrator, this does
        if Path(str(path)).name == denied:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", guarded)
    for denied in ("root", "images", "banded"):  # noqa: B007 (guarded sees it)
        assert refused("dtd", root)


def test_an_image_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source("dtd", dtd(tmp_path))

    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with raises(errors.MissingImageError, where=tmp_path):
        source.read([min(DTD)[0]])


def test_a_root_of_no_dataset_says_what_was_looked_for(tmp_path: Path) -> None:
    write_images(tmp_path, ["holidays/beach.jpg", "notes/a.jpg"])
    for name in (*IN_FILES, *OF_21K):
        message = refused(name, tmp_path)
        assert mentions(message, name, source_class(name).expected_files)
        assert "it looks like" not in message


OTHERS: dict[str, Write] = {name: next(iter(EVERY[name].values())) for name in IN_FILES} | TAKEN_FOR


@pytest.mark.parametrize("held", OTHERS)
def test_a_root_of_another_dataset_is_named(held: str, tmp_path: Path) -> None:
    OTHERS[held](tmp_path)
    for asked in (*IN_FILES, *OF_21K):
        if asked == held:
            assert open_source(asked, tmp_path).layout
        else:
            assert mentions(refused(asked, tmp_path), held), asked


def test_sorted_tiny_imagenet_is_not_taken_for_imagenet(tmp_path: Path) -> None:
    """Both have wnid folders and n01443537_12.JPEG in them; Tiny ImageNet numbers only to 499."""
    train = some("tiny-imagenet", "train", classes=4, each=9)
    write_images(tmp_path, in_class_folders(train, "train"))
    assert mentions(refused("imagenet1k", tmp_path), "tiny-imagenet")
    assert open_source("tiny-imagenet", tmp_path).count() == {"train": 36, "val": 0}


@pytest.mark.parametrize("given", ["", "fog", "fog/5"])
@pytest.mark.parametrize("flat_copy", [False, True])
def test_one_corruption_is_not_taken_for_imagenet(given: str, flat_copy: bool, tmp_path: Path) -> None:
    """Its folders and files have the names of ImageNet's own validation images."""
    below = "imagenet-c/fog/5"
    write_images(tmp_path, flat(IMAGENET_VAL, below) if flat_copy else in_class_folders(IMAGENET_VAL, below))
    root = tmp_path / "imagenet-c" / given
    assert mentions(refused("imagenet1k", root), "imagenet-c")
    source = open_source("imagenet-c", root)
    rows = [row for batch in source.scan() for row in batch.to_pylist()]
    assert {(row["image_id"], row["class_id"]) for row in rows} == {
        (f"fog/5/{image_id}", wnid) for image_id, wnid, _ in IMAGENET_VAL
    }


@pytest.mark.parametrize("part", ["es-test/param_control/l1/param_1", "es-val/auto_exposure/l5/param_5"])
def test_photographs_are_not_taken_for_imagenet(part: str, tmp_path: Path) -> None:
    """Each setting of ImageNet-ES has the names of validation images; `es-val` has other originals."""
    write_images(tmp_path, in_class_folders(IMAGENET_VAL, part))
    refused("imagenet1k", tmp_path / part)
    source = open_source("imagenet-es", tmp_path / part.partition("/")[0])
    assert source.count() == {"test": 0}


@pytest.mark.parametrize("flat_copy", [False, True])
def test_corrupted_images_under_another_name_are_told_by_their_size(flat_copy: bool, tmp_path: Path) -> None:
    """Every image of ImageNet-C has 224 x 224 pixels; of ImageNet's own hardly any has."""
    rows = some("imagenet1k", "val", classes=4)
    paths = list(flat(rows, "val") if flat_copy else in_class_folders(rows, "val"))
    write_images(tmp_path, paths)
    for path in paths:
        (tmp_path / path).write_bytes(jpeg(1, (224, 224)))
    assert mentions(refused("imagenet1k", tmp_path), 224)
    (tmp_path / paths[0]).write_bytes(jpeg(1, (224, 225)))
    assert open_source("imagenet1k", tmp_path).count() == {"train": 0, "val": len(rows)}


@pytest.mark.parametrize(
    ("at", "target"),
    [
        ("loop", "."),
        ("images/loop", ".."),
        ("images/banded/loop", ".."),
        ("images/woven", "../images"),
        ("images/woven", "woven"),
    ],
)
def test_a_loop_of_links(at: str, target: str, tmp_path: Path) -> None:
    root = dtd(tmp_path / "root")
    link(root / at, target)
    assert "loop" in refused("dtd", root)


def test_a_root_that_is_a_loop(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "loop" in refused("dtd", tmp_path / "a")


@pytest.mark.parametrize("at", ["images/woven", "images/banded/banded_0161.jpg", "images"])
def test_a_link_out_of_the_root_is_not_followed(at: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", dtd(tmp_path / "outside") / "images"
    if at != "images":
        dtd(root)
    link(root / at, outside / "banded" / "banded_0002.jpg" if at.endswith("jpg") else outside)
    root.joinpath("labels").mkdir(parents=True, exist_ok=True)
    assert refused("dtd", root, errors.UnsafeDataError)


def test_a_link_out_of_the_root_that_no_image_needs_is_passed_over(tmp_path: Path) -> None:
    root = dtd(tmp_path / "root")
    (tmp_path / "notes").mkdir()
    for at in ("README", "images/notes", "images/banded/notes"):
        link(root / at, tmp_path / "notes")
    assert open_source("dtd", root).count() == {"all": len(DTD)}


def test_one_class_in_two_folders(tmp_path: Path) -> None:
    write_images(tmp_path, ["train/arena/hockey/00000001.jpg", "train/arena-hockey/00000002.jpg"])
    assert mentions(refused("places365", tmp_path), "arena/hockey")


def test_a_corrupt_image_is_named_with_id_and_root(tmp_path: Path) -> None:
    root = dtd(tmp_path)
    image_id = min(DTD)[0]
    path = root / f"images/{image_id}.jpg"
    path.write_bytes(jpeg(1, (64, 64))[:-40])
    source = open_source("dtd", root)
    (raw,) = source.read([image_id])
    assert source.check_image(raw)
    with pytest.raises(errors.SourceError) as caught:
        source.decode(raw, image_id)
    assert f"dtd:{image_id}" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "truncated" in str(caught.value)


def test_no_root_says_how_to_give_one() -> None:
    with raises(errors.SourceError, naming=("--root", "dtd", "WORDNET_SPLITS_ROOT_DTD")):
        open_source("dtd", None)


def test_an_unknown_source_offers_the_nearest() -> None:
    with raises(errors.UnknownNameError, near="cifar100"):
        open_source("cifar-100", Path("x"))


def test_a_parameter_no_source_on_disk_takes(tmp_path: Path) -> None:
    with raises(errors.SourceError, naming="seed"):
        open_source("dtd", dtd(tmp_path), seed=1)


def test_every_source_can_be_found() -> None:
    for name in source_names():
        cls = source_class(name)
        assert cls.name == name
        assert cls.splits
        assert cls.expected_files or not cls.rooted
        assert set(cls.expected()) == set(cls.splits)


def test_a_sun_archive_of_other_names_counts_them(tmp_path: Path) -> None:
    names = ["SUN397/a/abbey/holiday.jpg", "SUN397/a/nowhere/sun_aaalbzqrimafwbiv.jpg"]
    good = "SUN397/a/abbey/sun_aaalbzqrimafwbiv.jpg"
    (tmp_path / "SUN397.tar").write_bytes(tar_bytes([(name, jpeg(1)) for name in (*names, good)]))
    source = open_source("sun397", tmp_path)
    assert [row["image_id"] for batch in source.scan() for row in batch.to_pylist()] == [
        "abbey/sun_aaalbzqrimafwbiv"
    ]
    assert set(source.unexpected) == set(names)


def endless(path: Path) -> None:
    path.unlink()
    link(path, "/dev/zero")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("spoil", [pipe, endless, lambda path: os.truncate(path, 6 << 30)])
def test_an_image_that_hangs_or_never_ends(tmp_path: Path, spoil: Write) -> None:
    source = open_source("dtd", dtd(tmp_path))
    spoil(tmp_path / "images" / f"{FIRST}.jpg")
    with raises(errors.SourceError, where="banded_0002.jpg"):
        source.read([FIRST])


def test_folders_nested_without_end(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 70)
    deep.mkdir(parents=True)
    with raises(errors.SourceError, where=tmp_path, naming="64"):
        list(entries(deep, tmp_path))


def train_tar_with_a_doubled_member(root: Path) -> None:
    doubled = tar_bytes([(f"{TRAIN_ID}.JPEG", jpeg(1)), (f"again/{TRAIN_ID}.JPEG", jpeg(2))])
    wnid = TRAIN_ID.partition("_")[0]
    (root / "ILSVRC2012_img_train.tar").write_bytes(tar_bytes([(f"{wnid}.tar", doubled)]))


def shards_with_a_doubled_row(root: Path) -> None:
    hub_shards(root, "train", [(f"{TRAIN_ID}.JPEG", jpeg(1)), (f"{TRAIN_ID}.JPEG", jpeg(2))])


FIRST, KEY = min(DTD)[0], "0" * 40
DOUBLED: dict[str, tuple[str, str, Write]] = {
    "two files": ("dtd", FIRST, files(*(f"images/{FIRST}.{end}" for end in ("jpg", "png")))),
    "two members": ("imagenet1k", TRAIN_ID, train_tar_with_a_doubled_member),
    "two rows": ("imagenet1k", TRAIN_ID, shards_with_a_doubled_row),
    "two keys": (
        *("lsun", f"val/bedroom/{KEY}"),
        files(f"val/bedroom/{KEY}.jpg", f"val/bedroom/0/0/0/0/0/0/{KEY}.webp"),
    ),
}


@pytest.mark.parametrize("how", DOUBLED)
def test_two_images_of_one_id(tmp_path: Path, how: str) -> None:
    name, image_id, write = DOUBLED[how]
    write(tmp_path)
    source = open_source(name, tmp_path)
    for look in (lambda: source.read([image_id]), lambda: list(source.scan())):
        with raises(errors.SourceError, naming=Path(image_id).name) as caught:
            look()
        assert str(tmp_path) in str(caught.value)
