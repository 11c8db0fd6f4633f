"""Tables that expand, and texts that nest or count, without end: refused before they are read."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import check_name, is_one_line, printable
from wordnet_splits.base.parquet import parquet_errors, parquet_file
from wordnet_splits.base.text_formats import parse_json, parse_toml
from wordnet_splits.base.untrusted import GiB, MiB, path_below, read_bytes, read_chunks

LONG = "x" * 2_000_000


def table(path: Path, columns: dict[str, object], **options: object) -> Path:
    pq.write_table(pa.table(columns), path, store_schema=False, **options)
    return path


def repeated(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(bytes(rows), pa.int8()), pa.array([text]))


@pytest.mark.fuzz
def test_a_dictionary_of_one_long_text(tmp_path: Path) -> None:
    path = table(tmp_path / "bomb.parquet", {"name": repeated(LONG, 3000)}, row_group_size=3000)
    with raises(DataError, where="bomb.parquet"), parquet_file(path):
        pass


@pytest.mark.fuzz
def test_front_coding_of_one_long_text(tmp_path: Path) -> None:
    names = pa.array([LONG] * 300)
    options = {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY"}}
    path = table(tmp_path / "bomb.parquet", {"name": names}, **options)
    assert path.stat().st_size < 4_000_000
    with raises(DataError, where="bomb.parquet"), parquet_file(path):
        pass


def test_more_rows_than_the_file_can_hold(tmp_path: Path) -> None:
    path = table(tmp_path / "rows.parquet", {"name": repeated("x", 30_000_000)})
    with raises(DataError, where="rows.parquet", naming="30,000,000"), parquet_file(path):
        pass


@pytest.mark.fuzz
def test_zeros_that_were_packed(tmp_path: Path) -> None:
    zeros = pa.array([bytes(100_000_000)] * 4)
    path = table(tmp_path / "zeros.parquet", {"data": zeros}, use_dictionary=False, compression="zstd")
    with raises(DataError, where="zeros.parquet"), parquet_file(path):
        pass


@pytest.mark.parametrize(
    "text", ["[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500, "1" * 5000, "[" * 100_000, "NaN", "{"]
)
def test_json_without_end(text: str) -> None:
    with raises(DataError, where="f"):
        parse_json(text, where="f")


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 500 + "]" * 500, "a = " + "1" * 5000, "a." * 50_000 + "b = 1"]
)
def test_toml_without_end(text: str) -> None:
    with raises(DataError, where="f"):
        parse_toml(text, where="f")


@pytest.mark.parametrize("path", ["../x", "/dev/zero", "a/../../x", "out/x", "\x00"])
def test_paths_that_leave_their_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "out").symlink_to(tmp_path)
    with raises(DataError, where="in"):
        path_below(tmp_path / "in", path)


@pytest.mark.parametrize("text", [r'{"a": "\ud800"}', r'["\uDC00x"]', r'{"\ud83d": 1}'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with raises(DataError, where="f"):
        parse_json(text, where="f")
    assert parse_json(r'["\ud83d\ude00", "\\ud800"]', where="f") == ["\U0001f600", r"\ud800"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a\tb",
        "a\nb",
        "a\ud800b",
        " a",
        "a\u00a0",
        "a" * 257,
        "a\u2028b",
        "a\x85b",
        "a\u202eb",
        "a\u2066b",
    ],
)
def test_names_that_no_table_holds(name: str) -> None:
    with raises(DataError, where="f"):
        check_name("split", name, where="f")
    check_name("split", "ä" * 256, where="f")


@pytest.mark.parametrize(
    "name",
    [
        "sac\u00a0à dos",
        "東京\u3000タワー",
        "میوه\u200cها",
        "क्\u200dष",
        "l\u202feau",
        "\U0001f469\u200d\U0001f33e",
    ],
)
def test_names_of_every_script_are_taken(name: str) -> None:
    check_name("class", name, where="f")
    assert is_one_line(name)
    assert printable(name).isprintable()


def test_names_are_printed_on_one_line() -> None:
    assert printable("a\x1b[31m\x07\nb") == "a\\x1b[31m\\x07\\nb"
    assert printable(LONG) == "x" * 200 + "..."


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    with raises(DataError, where=tmp_path):
        read_bytes(tmp_path, largest=10)


def test_reading_takes_the_memory_of_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x" * 155_000)
    tracemalloc.start()
    try:
        data = read_bytes(tmp_path / "small", largest=16 * GiB)
        streamed = b"".join(read_chunks(io.BytesIO(data), 16 * GiB))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data == streamed == b"x" * 155_000
    assert b"".join(read_chunks(io.BytesIO(data), 1000)) == data[:1000]
    assert peak < 4 * MiB


def test_a_lack_of_memory_is_not_the_fault_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "sound.parquet"
    with pytest.raises(MemoryError), parquet_errors(path):
        raise pa.ArrowMemoryError("malloc of size 64 failed")
    with raises(DataError, where="sound.parquet"), parquet_errors(path):
        raise pa.ArrowException("Corrupt footer")
