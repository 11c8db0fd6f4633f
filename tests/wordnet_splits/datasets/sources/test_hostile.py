"""Datasets made to hang, to fill the memory or to pass one picture off for another: one line for each."""

from __future__ import annotations

import os
import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import (
    IMAGENET_TRAIN,
    IMAGENET_VAL,
    hub_shards,
    in_class_folders,
    jpeg,
    link,
    some,
    tar_bytes,
    write_images,
)
from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.datasets.sources.layouts import parquet_files
from wordnet_splits.datasets.sources.layouts.unpickle import load_pickle
from wordnet_splits.datasets.sources.layouts.walk import entries
from wordnet_splits.datasets.sources.roots import read_roots_file

GiB = 1 << 30
DTD = some("dtd", "all")
FIRST = min(DTD)[0]
TRAIN_ID = min(IMAGENET_TRAIN)[0]


def dtd(root: Path) -> Path:
    """Write a few textures; return the path of the first."""
    write_images(root, in_class_folders(DTD, "images", extension="jpg"))
    return root / "images" / f"{FIRST}.jpg"


def sparse(path: Path, size: int, head: bytes = b"") -> None:
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    link(path, "/dev/zero")


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (pipe, ()),
        (lambda path: sparse(path, 6 * GiB), "6,442,450,944"),
        (endless, ()),
    ],
)
def test_a_picture_that_hangs_or_never_ends(
    tmp_path: Path, spoil: Callable[[Path], None], named: object
) -> None:
    path = dtd(tmp_path)
    source = open_source("dtd", tmp_path)
    spoil(path)
    with raises(SourceError, where="banded_0002.jpg", naming=named):
        source.read([FIRST])


def test_folders_nested_without_end(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 70)
    deep.mkdir(parents=True)
    with raises(SourceError, where=tmp_path, naming="64"):
        list(entries(deep, tmp_path))


# -- one id, two pictures ------------------------------------------------------------------------------------


def test_two_files_under_one_id(tmp_path: Path) -> None:
    path = dtd(tmp_path)
    path.with_suffix(".png").write_bytes(jpeg(99))
    source = open_source("dtd", tmp_path)
    for look in (lambda: source.read([FIRST]), lambda: list(source.scan())):
        with raises(SourceError, naming=Path(FIRST).name):
            look()


def test_two_members_under_one_id(tmp_path: Path) -> None:
    wnid = TRAIN_ID.partition("_")[0]
    doubled = tar_bytes([(f"{TRAIN_ID}.JPEG", jpeg(1)), (f"again/{TRAIN_ID}.JPEG", jpeg(2))])
    (tmp_path / "ILSVRC2012_img_train.tar").write_bytes(tar_bytes([(f"{wnid}.tar", doubled)]))
    source = open_source("imagenet1k", tmp_path)
    for look in (lambda: source.read([TRAIN_ID]), lambda: list(source.scan())):
        with raises(SourceError, where="ILSVRC2012_img_train.tar", naming=TRAIN_ID):
            look()


def test_two_rows_under_one_id(tmp_path: Path) -> None:
    hub_shards(tmp_path, "train", [(f"{TRAIN_ID}.JPEG", jpeg(1)), (f"{TRAIN_ID}.JPEG", jpeg(2))])
    source = open_source("imagenet1k", tmp_path)
    for look in (lambda: source.read([TRAIN_ID]), lambda: list(source.scan())):
        with raises(SourceError, where=tmp_path, naming=TRAIN_ID):
            look()


def test_two_lsun_files_under_one_key(tmp_path: Path) -> None:
    key = "0" * 40
    write_images(tmp_path, [f"val/bedroom/{key}.jpg", "val/bedroom/0/0/0/0/0/0/" + key + ".webp"])
    source = open_source("lsun", tmp_path)
    for look in (lambda: source.read([f"val/bedroom/{key}"]), lambda: list(source.scan())):
        with raises(SourceError, where="bedroom"):
            look()


# -- archives and tables that claim more than they hold ------------------------------------------------------


def header(name: bytes, size: int, kind: bytes) -> bytes:
    info = tarfile.TarInfo(name.decode("latin-1"))
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT, "latin-1")


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
    """Write two shards of a picture each; return the path of the second."""
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


def test_a_picture_without_end_in_a_table_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    svhn_shards(tmp_path)
    monkeypatch.setattr(parquet_files, "LARGEST_IMAGE", 20)
    with raises(SourceError, where=tmp_path):
        open_source("svhn", tmp_path).read(["train/0"])


# -- pickles -------------------------------------------------------------------------------------------------


def test_names_that_are_lists_which_share_each_other(tmp_path: Path) -> None:
    shared: list[object] = []
    for _ in range(28):  # 2^28 items, were it written out
        shared = [shared, shared]
    batch = {"data": np.zeros((1, 3072), np.uint8), "fine_labels": [0], "filenames": [shared]}
    (tmp_path / "train").write_bytes(pickle.dumps(batch, protocol=2))
    assert list(open_source("cifar100", tmp_path).scan(["train"])) == []


@pytest.mark.parametrize("opcode", [b"\x8d", b"\x8e"])
def test_a_string_that_claims_exabytes(tmp_path: Path, opcode: bytes) -> None:
    (tmp_path / "train").write_bytes(b"\x80\x04" + opcode + struct.pack("<Q", 1 << 60) + b"abc.")
    with raises(SourceError, where="train"):
        load_pickle(tmp_path / "train")


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 500 + "]" * 500, "a = " + "1" * 5000, "a." * 50_000 + "b = 1"]
)
def test_roots_that_nest_or_count_without_end(tmp_path: Path, text: str) -> None:
    (tmp_path / "roots.toml").write_text(text)
    with raises(SourceError, where="roots.toml"):
        read_roots_file(tmp_path / "roots.toml")
