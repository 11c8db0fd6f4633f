"""The publisher's archives, read in place: what is refused, and that nothing is unpacked or leaked."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits.datasets.sources.trees import (
    IMAGENET_TRAIN,
    IMAGENET_VAL,
    jpeg,
    tar_bytes,
    train_tar,
    val_tar,
)
from wordnet_splits.base import errors
from wordnet_splits.datasets.sources import Source, open_source
from wordnet_splits.datasets.sources.layouts import archives

TRAIN, VAL = "ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"


def source(root: Path, **archives: bytes) -> Source:
    for name, data in archives.items():
        (root / {"train": TRAIN, "val": VAL}[name]).write_bytes(data)
    return open_source("imagenet1k", root)


def refused(root: Path, error: type[errors.SplitsError], **archives: bytes) -> str:
    with pytest.raises(error) as caught:
        list(source(root, **archives).scan())
    message = str(caught.value)
    assert "\n" not in message
    assert str(root) in message
    return message


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", len(IMAGENET_VAL) - 1)
    message = refused(tmp_path, errors.UnsafeDataError, val=val_tar(IMAGENET_VAL))
    assert mentions(message, len(IMAGENET_VAL) - 1)


def test_a_member_far_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = source(tmp_path, val=val_tar(IMAGENET_VAL))
    monkeypatch.setattr(archives, "LARGEST_IMAGE", 100)
    with raises(errors.UnsafeDataError, where="ILSVRC2012_img_val.tar"):
        opened.read([min(IMAGENET_VAL)[0]])


def test_other_members_are_counted_as_unexpected(tmp_path: Path) -> None:
    inner = tar_bytes([("n01440764_18.JPEG", jpeg(1)), ("n02119789_5.JPEG", jpeg(2)), ("notes.txt", b"x")])
    train = tar_bytes([("n01440764.tar", inner), ("n00000001.tar", inner), ("README", b"x")])
    opened = source(tmp_path, train=train)
    assert opened.count() == {"train": 1, "val": 0}
    assert opened.unexpected == {
        "n01440764.tar/n02119789_5.JPEG": 1,
        "n01440764.tar/notes.txt": 1,
        "n00000001.tar/n01440764_18.JPEG": 1,
        "n00000001.tar/n02119789_5.JPEG": 1,
        "n00000001.tar/notes.txt": 1,
        "README": 1,
    }


def test_missing_images_of_an_archive(tmp_path: Path) -> None:
    opened = source(tmp_path, train=train_tar(IMAGENET_TRAIN), val=val_tar(IMAGENET_VAL))
    for image_id in ("n01440764_1", "n01443537_10026", "ILSVRC2012_val_00050000", "ILSVRC2012_val_00050001"):
        with raises(errors.MissingImageError, where=tmp_path, naming=image_id):
            opened.read([image_id])


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    opened = source(tmp_path, train=train_tar(IMAGENET_TRAIN), val=val_tar(IMAGENET_VAL))
    before = descriptors()
    for _ in range(5):
        opened.count()
        next(iter(opened.scan()))  # and the rest never asked for
    opened.read([row[0] for row in IMAGENET_TRAIN])
    assert descriptors() == before + 1
    del opened
    assert descriptors() == before


def test_members_in_folders_and_long_names(tmp_path: Path) -> None:
    """Archives that others made hold folders, and headers for long names (GNU and pax)."""
    image_id = min(IMAGENET_VAL)[0]
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
            folder = tarfile.TarInfo("x" * 120)
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
            info = tarfile.TarInfo(f"{'x' * 120}/{image_id}.JPEG")
            info.size = len(jpeg(7))
            archive.addfile(info, io.BytesIO(jpeg(7)))
        opened = source(tmp_path, val=buffer.getvalue())
        assert opened.count()["val"] == 1
        assert opened.read([image_id]) == [jpeg(7)]
