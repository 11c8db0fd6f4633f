"""Every field of ``packed.json`` and of the index, altered: refused when read, or a problem of the check."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.raising import raises
from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.benchmark.images import check_store, open_store
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.images.store import PackedStore
from wordnet_splits.benchmark.resolve import load_manifest

PART = ("test", "digits-6-9")
OTHER = {
    "schema": 2,
    "benchmark": "osc-p1",
    "version": 7,
    "split": "train",
    "group": "uniform",
    "source": "cifar10",
    "view": "fix",
    "spec": "of nothing",
    "layout": "files",
    "shape": [3, 4, 16],
    "rows": 713,
    "missing": 1,
    "bytes": 192,
    "images": "0" * 64,
    "pixels": "0" * 64,
    "files": "0" * 64,
    "sha256": "0" * 64,
    "index_sha256": "0" * 64,
    "checksum": "0" * 64,
}
"""A value of each field that is as good as its own, but not the one that was written."""

FIELDS = sorted(OTHER)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> PackedStore:
    return pack(load_manifest("digits"), tmp_path_factory.mktemp("packed") / "digits", groups=[PART[1]]).store


@pytest.fixture
def store(packed: PackedStore, tmp_path: Path) -> Path:
    return Path(shutil.copytree(packed.folder, tmp_path / "digits"))


def rewritten(store: Path, change: object, *, honest: bool = False) -> None:
    """Alter the description by ``change(data, part)``; ``honest`` makes its checksum anew."""
    path = store / "packed.json"
    data = json.loads(path.read_text())
    part = next(p for p in data["parts"] if (p["split"], p["group"]) == PART)
    change(data, part)
    if honest:
        data["checksum"] = digest_json({k: v for k, v in data.items() if k != "checksum"})
    path.write_text(json.dumps(data))


def put(field: str, value: object) -> object:
    def change(data: dict[str, object], part: dict[str, object]) -> None:
        (part if field in part else data)[field] = value

    return change


def test_every_field_is_walked(store: Path) -> None:
    data = json.loads((store / "packed.json").read_text())
    assert {*data, *data["parts"][0]} - {"parts"} == set(OTHER)


@pytest.mark.parametrize("field", FIELDS)
def test_an_altered_field_does_not_fit_the_checksum(store: Path, field: str) -> None:
    rewritten(store, put(field, OTHER[field]))
    with raises(SourceError, where="packed.json"):
        open_store(store)


@pytest.mark.parametrize("field", [field for field in FIELDS if field != "checksum"])
def test_an_altered_field_with_a_checksum_made_anew_is_found(store: Path, field: str) -> None:
    rewritten(store, put(field, OTHER[field]), honest=True)
    manifest = load_manifest("digits")
    malformed = False
    problems = []
    try:
        problems = check_store(store, manifest)
    except SourceError as error:
        malformed = "is malformed" in str(error)
    assert problems or malformed


@pytest.mark.parametrize(
    "change",
    [
        put("group", "../digits-6-9"),
        put("split", ".."),
        put("benchmark", "../digits"),
        put("rows", -1),
        put("rows", True),
        put("rows", "714"),
        put("shape", [3, 8]),
        put("shape", None),
        put("bytes", 1 << 70),
        put("extra", 1),
        lambda data, part: part.pop("sha256"),
        lambda data, part: data["parts"].append(part),
    ],
)
def test_what_no_store_says_is_malformed(store: Path, change: object) -> None:
    rewritten(store, change, honest=True)
    with raises(SourceError, where="packed.json"):
        open_store(store).images(PART)


def test_a_description_without_parts_has_a_problem(store: Path) -> None:
    rewritten(store, lambda data, part: data["parts"].clear(), honest=True)
    assert [problem.detail for problem in check_store(store)] == [f"{store} has no images"]


def test_a_description_without_a_checksum_is_refused(store: Path) -> None:
    rewritten(store, lambda data, part: data.pop("checksum"))
    with raises(SourceError, where="packed.json", naming="checksum"):
        open_store(store)


@pytest.mark.parametrize("column", ["image_id", "row", "offset", "length", "crc32"])
def test_an_altered_index_gives_no_image(store: Path, column: str) -> None:
    path = store / "test" / "digits-6-9.arrow"
    table = pa.ipc.open_file(path.read_bytes()).read_all()
    number = table.schema.get_field_index(column)
    values = table[column].to_pylist()
    values[0], values[1] = (values[1], values[0]) if column != "length" else (191, 192)
    table = table.set_column(number, table.schema.field(number), pa.array(values, table.schema.types[number]))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_batch(table.combine_chunks().to_batches()[0])
    assert check_store(store)
    with pytest.raises((SourceError, DataError)):
        open_store(store).images_of(load_manifest("digits"), PART).pixels(np.arange(2))


def test_a_store_of_another_benchmark_serves_no_images(store: Path) -> None:
    other = load_manifest("digits")
    other.data = other.data.model_copy(update={"name": "digits@seed=3"})
    opened = open_store(store)
    with raises(SourceError, where="digits"):
        opened.images_of(other, PART)
