"""Hub Parquet: file names in every form, shards wherever they lie, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import IMAGENET_TRAIN, hub_shards, jpeg
from wordnet_splits.base import errors
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.datasets.sources.layouts.conventions import find_shards


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
