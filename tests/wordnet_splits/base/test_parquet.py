"""The one writer and reader of Parquet files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raising import raises
from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import DataError, ManifestError, OutputError, SourceError
from wordnet_splits.base.parquet import ROW_GROUP_ROWS, read_table, write_table, write_table_file


def image_table(rows: int) -> pa.Table:
    """Rows as in an ImageNet-style image table: 1,300 a class, numbers spread as real ones are."""
    numbers = np.sort(np.random.default_rng(0).choice(20_000, size=(-(-rows // 1300), 1300)), axis=1)
    wnids = [f"n{1440764 + 7919 * k:08d}" for k in range(len(numbers))]
    ids = sorted((w, f"{w}_{n}") for w, row in zip(wnids, numbers.tolist(), strict=True) for n in row)[:rows]
    constant = {
        "source": "imagenet1k",
        "role": "id",
        "group": "imagenet-200",
        "split": "train",
        "view": "raw",
    }
    return pa.table(
        {
            "image_id": [i for _, i in ids],
            "class_id": [c for c, _ in ids],
            **{name: pa.array([value] * rows) for name, value in constant.items()},
            "label": pa.array([wnids.index(c) for c, _ in ids], pa.int32()),
            "digest": pa.nulls(rows, pa.binary(32)),
        }
    )


def test_round_trip_keeps_rows_types_and_metadata_and_nothing_else(tmp_path: Path) -> None:
    table = pa.table(
        {
            "image_id": ["a/1", "a/10", "b/2"],
            "digest": pa.array([b"\0" * 32, None, b"\xff" * 32], pa.binary(32)),
            "wnids": pa.array([["n1", "n2"], [], ["n3"]], pa.list_(pa.string())),
            "via": pa.array([[{"relation": "equal", "value": 0.5}], [], []]),
            "label": pa.array([1, -1, None], pa.int8()),
        }
    ).replace_schema_metadata({"pandas": "{}", "left": "over"})
    path = tmp_path / "t.parquet"
    write_table(table, path, metadata={"origin": "owner/repository:path@commit"})
    back = read_table(path)
    assert back.equals(table)
    assert back.schema.metadata == {b"origin": b"owner/repository:path@commit"}
    assert read_table(path, ["label", "image_id"]).column_names == ["label", "image_id"]
    write_table(table, path)
    assert not read_table(path).schema.metadata


def test_equal_tables_give_equal_bytes_however_they_are_chunked(tmp_path: Path) -> None:
    table = image_table(3000)
    chunked = pa.concat_tables([table.slice(0, 7), table.slice(7, 2000), table.slice(2007)])
    write_table(table, tmp_path / "a")
    write_table(chunked, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_image_tables_take_at_most_four_bytes_a_row_in_fixed_row_groups(tmp_path: Path) -> None:
    rows = ROW_GROUP_ROWS + 20_000
    path = tmp_path / "images.parquet"
    write_table(image_table(rows), path)
    assert path.stat().st_size <= 4 * rows
    held = pq.read_metadata(path)
    assert [held.row_group(g).num_rows for g in range(held.num_row_groups)] == [
        ROW_GROUP_ROWS,
        20_000,
    ]


def test_a_failed_write_leaves_the_old_file_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    write_table(pa.table({"label": [1]}), path)
    before = path.read_bytes()

    def full(table: pa.Table, sink: object, **settings: object) -> None:
        sink.write(b"half")  # type: ignore[attr-defined]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    monkeypatch.setattr("wordnet_splits.base.parquet._leaf_paths", lambda schema: schema.names)
    with raises(OutputError, where="t.parquet"):
        write_table(pa.table({"label": [2]}), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]


def test_writing_below_a_file_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises(OutputError, where="t.parquet"):
        write_table(pa.table({"label": [1]}), tmp_path / "file" / "t.parquet")


@pytest.mark.parametrize("keep", [0, 3, 40, -9])
def test_a_file_that_is_not_whole_parquet_is_one_clear_error(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "t.parquet"
    write_table(image_table(500), path)
    path.write_bytes(path.read_bytes()[:keep])
    with raises(DataError, where="t.parquet"):
        read_table(path)


def test_read_errors_name_the_file_and_take_the_callers_kind(tmp_path: Path) -> None:
    with raises(ManifestError, where="gone.parquet"):
        read_table(tmp_path / "gone.parquet", error=ManifestError)
    write_table(pa.table({"label": [1]}), tmp_path / "t.parquet")
    with raises(DataError, where="t.parquet", naming=("image_id", "label")):
        read_table(tmp_path / "t.parquet", ["image_id"])
    with pytest.raises(DataError):
        read_table(tmp_path)


def test_digests_are_what_the_definition_says() -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    by_hand = b"\x02\0\0\0" + b"\x03\0\0\0" + bytes(range(18))
    assert digest_pixels(pixels) == hashlib.sha256(by_hand).digest()
    assert digest_pixels(pixels.transpose(1, 0, 2)) != digest_pixels(pixels)
    assert digest_pixels(np.asfortranarray(pixels)) == digest_pixels(pixels)
    grey = pixels[:, :, 0]
    assert digest_pixels(grey) == digest_pixels(np.stack([grey] * 3, axis=2))
    assert digest_file(b"jpeg") == hashlib.sha256(b"jpeg").digest()


@pytest.mark.parametrize("bad", [np.zeros((2, 2, 3)), np.zeros((2, 2, 4), np.uint8), np.zeros(3, np.uint8)])
def test_digest_refuses_what_is_not_rgb(bad: np.ndarray) -> None:
    with pytest.raises(SourceError):
        digest_pixels(bad)


def test_a_table_for_people_is_csv_without_formulas_or_parquet(tmp_path):
    table = pa.table({"name": ["=1+1", None], "value": pa.array([0.5, 1.5], pa.float32())})
    write_table_file(table, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text("utf-8") == "name,value\n'=1+1,0.5\n,1.5\n"
    write_table_file(table, tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").equals(table)
    with raises(DataError, where="a.txt"):
        write_table_file(table, tmp_path / "a.txt")
    assert not (tmp_path / "a.txt").exists()


def test_ascending_numbers_of_images_take_no_room(tmp_path):
    numbers = pa.array(range(100_000), pa.int32())
    for name in ("image", "number"):
        write_table(pa.table({name: numbers}), tmp_path / f"{name}.parquet", compression_level=3)
        assert read_table(tmp_path / f"{name}.parquet")[name].combine_chunks().equals(numbers)
    sizes = [(tmp_path / f"{name}.parquet").stat().st_size for name in ("image", "number")]
    assert sizes[0] < sizes[1] / 10
    assert sizes[0] < 10_000


@pytest.mark.parametrize("columns", [None, ["a"], ["b"]])
def test_two_columns_of_one_name_are_refused(tmp_path: Path, columns: list[str] | None) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "b", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ManifestError) as caught:
        read_table(tmp_path / "t.parquet", columns, error=ManifestError)
    assert caught.value.where == str(tmp_path / "t.parquet")
