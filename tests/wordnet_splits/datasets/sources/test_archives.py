"""The publisher's archives, read in place: what is refused, and that nothing is unpacked or leaked."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits.datasets.sources.trees import (
    IMAGENET_TRAIN,
    IMAGENET_VAL,
    hub_shards,
    jpeg,
    tar_bytes,
    train_tar,
    val_tar,
)
from wordnet_splits.base import errors
from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.datasets.sources import Source, open_source
from wordnet_splits.datasets.sources.layouts import archives, parquet_files
from wordnet_splits.datasets.sources.layouts.conventions import find_shards

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


@pytest.mark.parametrize(
    "path",
    [
        "n01440764_10026.JPEG",
        "n01440764_10026_n01440764.JPEG",
        "train/n01440764/n01440764_10026.jpeg",
        "n01440764_10026",
    ],
)
def test_the_id_is_found_in_the_path(path: str, tmp_path: Path) -> None:
    hub_shards(tmp_path, "train", [(path, jpeg(3))], shards=1)
    source = open_source("imagenet1k", tmp_path)
    (batch,) = source.scan()
    assert batch.to_pylist() == [{"image_id": "n01440764_10026", "class_id": "n01440764", "split": "train"}]
    assert source.read(["n01440764_10026"]) == [jpeg(3)]


def test_a_name_of_another_class_or_none_is_unexpected(tmp_path: Path) -> None:
    rows = [("n01440764_10026.JPEG", jpeg(0)), ("n00000001_1.JPEG", jpeg(1)), (None, jpeg(2))]
    hub_shards(tmp_path, "train", rows, shards=1)
    source = open_source("imagenet1k", tmp_path)
    assert source.count() == {"train": 1, "val": 0}
    assert source.unexpected == {"n00000001_1": 1, "(a row without a file name)": 1}


def test_shards_lie_where_the_hub_puts_them(tmp_path: Path) -> None:
    for path in (
        "data/train-00001-of-00002.parquet",
        "data/train-00000-of-00002.parquet",
        "default/validation/0000.parquet",
        "default/test/0000.parquet",
        "default/notes/0000.parquet",
        "data/training.parquet",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    found = {
        split: [p.relative_to(tmp_path).as_posix() for p in paths]
        for split, paths in find_shards(tmp_path, tmp_path).items()
    }
    assert found == {
        "train": ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"],
        "val": ["default/validation/0000.parquet"],
        "test": ["default/test/0000.parquet"],
    }


def test_a_copy_without_names_is_refused(tmp_path: Path) -> None:
    hub_shards(tmp_path, "train", [(None, jpeg(0))] * 4)
    with raises(errors.SourceError, where="train-00000-of-00002.parquet"):
        open_source("imagenet1k", tmp_path)


def test_a_row_without_bytes_is_a_missing_image(tmp_path: Path) -> None:
    image = pa.array(
        [{"bytes": None, "path": "n01440764_18.JPEG"}],
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )
    pq.write_table(pa.table({"image": image}), tmp_path / "train-00000-of-00001.parquet")
    source = open_source("imagenet1k", tmp_path)
    assert source.count()["train"] == 1
    with raises(errors.MissingImageError, where=tmp_path, naming="n01440764_18"):
        source.read(["n01440764_18"])


def test_each_row_group_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[tuple[str | None, bytes]] = [
        (f"{i}.JPEG", jpeg(n)) for n, (i, _, _) in enumerate(sorted(IMAGENET_TRAIN))
    ]
    hub_shards(tmp_path, "train", rows, shards=2)
    source = open_source("imagenet1k", tmp_path)
    source.read(["n01440764_18"])  # the index is made
    reads: list[object] = []
    whole = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda self, *a, **k: (reads.append(a), whole(self, *a, **k))[1]
    )
    ids = [i for i, _, _ in sorted(IMAGENET_TRAIN)]
    assert source.read(ids) == [data for _, data in rows]  # neighbours lie in different shards
    assert len(reads) <= 5  # 9 rows in 2 shards, 2 rows a group


TRAIN_ID = min(IMAGENET_TRAIN)[0]


def test_long_names_do_not_widen_the_index(tmp_path: Path) -> None:
    members = [("a" * 900 + ".JPEG", jpeg(0)), (f"{min(IMAGENET_VAL)[0]}.JPEG", jpeg(1))]
    (tmp_path / "ILSVRC2012_img_val.tar").write_bytes(tar_bytes_gnu(members))
    source = open_source("imagenet1k", tmp_path)
    assert source.read([min(IMAGENET_VAL)[0]]) == [jpeg(1)]
    (tmp_path / "ILSVRC2012_img_val.tar").write_bytes(tar_bytes_gnu([("a" * 2000 + ".JPEG", b"")]))
    with raises(UnsafeDataError, where="ILSVRC2012_img_val.tar", naming="2,005"):
        list(open_source("imagenet1k", tmp_path).scan())


def tar_bytes_gnu(files: list[tuple[str, bytes]]) -> bytes:
    blocks = b""
    for name, data in files:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        blocks += info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)
    return blocks + bytes(1024)


def test_a_long_name_in_parquet(tmp_path: Path) -> None:
    rows = [(f"{TRAIN_ID}.JPEG", jpeg(1)), ("x" * 20_000_000, jpeg(2))]
    hub_shards(tmp_path, "train", rows, shards=1)
    source = open_source("imagenet1k", tmp_path)
    assert source.read([TRAIN_ID]) == [jpeg(1)]
    assert source.count()["train"] == 1


@pytest.mark.fuzz
def test_thirty_million_rows_of_one(tmp_path: Path) -> None:
    indices = pa.DictionaryArray.from_arrays(pa.array(bytes(30_000_000), pa.int8()), pa.array(["x.JPEG"]))
    fields = [indices.cast(pa.binary()), indices.cast(pa.string())]
    image = pa.StructArray.from_arrays(fields, ["bytes", "path"])
    pq.write_table(pa.table({"image": image}), tmp_path / "train-00000-of-00001.parquet")
    with raises(SourceError, naming="30,000,000"):
        open_source("imagenet1k", tmp_path)


def test_a_shard_without_the_column_of_the_others(tmp_path: Path) -> None:
    hub_shards(tmp_path, "train", [(f"{TRAIN_ID}.JPEG", jpeg(n)) for n in range(4)])
    path = tmp_path / "train-00001-of-00002.parquet"
    pq.write_table(pq.read_table(path).rename_columns(["picture", "label"]), path)
    with raises(SourceError, where="train-00001-of-00002.parquet"):
        list(open_source("imagenet1k", tmp_path).scan())


def test_names_that_are_no_utf8_in_parquet(tmp_path: Path) -> None:
    latin = pa.array([b"caf\xe9.JPEG"], pa.binary())
    names = pa.Array.from_buffers(pa.string(), 1, latin.buffers())
    image = pa.StructArray.from_arrays([pa.array([jpeg(1)]), names], ["bytes", "path"])
    pq.write_table(pa.table({"image": image}), tmp_path / "train-00000-of-00001.parquet")
    with raises(SourceError, where="train-00000-of-00001.parquet", naming="UTF8"):
        open_source("imagenet1k", tmp_path)


def svhn_shards(root: Path) -> Path:
    """Write two shards of a image each; return the path of the second."""
    hub_shards(root / "cropped_digits", "train", [(None, jpeg(n)) for n in range(2)])
    return root / "cropped_digits" / "train-00001-of-00002.parquet"


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop_columns(["label"]),
        lambda table: table.set_column(1, "label", pa.array([0.0])),
    ],
)
def test_labels_that_another_shard_has(tmp_path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    path = svhn_shards(tmp_path)
    pq.write_table(change(pq.read_table(path)), path)
    with raises(SourceError, where="train-00001-of-00002.parquet"):
        list(open_source("svhn", tmp_path).scan())


def test_a_image_without_end_in_a_table_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    svhn_shards(tmp_path)
    monkeypatch.setattr(parquet_files, "LARGEST_IMAGE", 20)
    with raises(SourceError, where=tmp_path):
        open_source("svhn", tmp_path).read(["train/0"])
