"""A ``manifest.json`` that another wrote: every shape but ours is one clear error, and no path leaves."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.benchmark.checks.freeze import freeze
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.benchmark.manifest.metadata import check_data
from wordnet_splits.benchmark.manifest.tables import (
    CLASS_IDENTITY,
    CLASS_SCHEMA,
    IMAGE_IDENTITY,
    IMAGE_SCHEMA,
    PIXEL_IDENTITY,
    classes_fingerprint,
    explanation_fingerprint,
    image_table,
    images_fingerprint,
)
from wordnet_splits.benchmark.resolve import load_manifest

from ...recipes import KNOWN, write_recipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    base = tmp_path_factory.mktemp("build")
    built = build_benchmark(write_recipe(base, KNOWN), out=base).folder
    assert built is not None
    return built


@pytest.fixture
def data(folder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return copy.deepcopy(found)


def at(data: Any, path: str) -> tuple[Any, Any]:
    *way, last = (int(p) if p.isdigit() else p for p in path.split("."))
    for part in way:
        data = data[part]
    return data, last


WRONG: list[tuple[str, object]] = [
    ("schema", 2),
    ("name", "../../mine"),
    ("name", "Mine"),
    ("version", "1"),
    ("groups", {}),
    ("groups.0.actual", "178"),
    ("complete", None),
    ("fingerprint", "abc"),
    ("fingerprints", []),
    ("fingerprints.classes", None),
    ("fingerprints.images.0.split", "../test"),
    ("fingerprints.images.0.group", "../../../etc/known"),
    ("fingerprints.images.0.group", "/etc/known"),
    ("leaks", [{"kind": "class"}]),
    ("missing", 3),
    ("provenance", None),
]


def test_what_build_writes_is_accepted(data):
    assert check_data(data, "here").as_dict() == data


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_a_wrong_value_is_named_by_its_key(data, path, value):
    holder, last = at(data, path)
    holder[last] = value
    with raises(ManifestError, where="here") as caught:
        check_data(data, "here")
    assert path.split(".")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", sorted({p for p, _ in WRONG}))
def test_a_key_that_is_missing(data, path):
    holder, last = at(data, path)
    del holder[last]
    with pytest.raises(ManifestError):
        check_data(data, "here")


@pytest.mark.parametrize("text", ["", "[]", "null", '{"schema": 1}', '{"schema": 1', "\x00"])
def test_a_file_that_is_no_manifest(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with raises(ManifestError, where="manifest.json"):
        load_manifest(tmp_path)


def test_a_manifest_with_another_recipe_in_it(folder, data, tmp_path):
    data["recipe"]["group"][0]["role"] = "friend"
    freeze(read_manifest(folder.parent / "mine"), manifests=tmp_path)
    (tmp_path / "mine" / "manifest.json").write_text(json.dumps(data))
    with raises(ManifestError, where="manifest.json", naming=("recipe", "group.0.role")):
        verify_benchmark(read_manifest(tmp_path / "mine"))


TEXT = st.text(max_size=8)


def by_the_contract(table: pa.Table, columns: tuple[str, ...]) -> str:
    state = hashlib.sha256()
    for row in table.select(list(columns)).to_pylist():
        if "digest" in row:
            row["digest"] = row["digest"].hex()
        line = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
        state.update(line.encode())
    return state.hexdigest()


IMAGE_ROWS = st.lists(
    st.fixed_dictionaries(
        dict.fromkeys(("source", "image_id", "class_id", "role", "group", "split", "view"), TEXT)
        | {"label": st.integers(-1, 2**31 - 1), "digest": st.binary(min_size=32, max_size=32)}
    ),
    max_size=6,
)


@given(IMAGE_ROWS)
def test_image_lines_equal_json_dumps_on_every_character(rows):
    table = pa.Table.from_pylist(rows, schema=IMAGE_SCHEMA)
    found = images_fingerprint([table])
    assert found.images == by_the_contract(table, IMAGE_IDENTITY)
    assert found.pixels == by_the_contract(table, PIXEL_IDENTITY)


@given(IMAGE_ROWS, st.integers(0, 6))
def test_cutting_a_table_changes_nothing(rows, cut):
    table = pa.Table.from_pylist(rows, schema=IMAGE_SCHEMA)
    parts = [table.slice(0, cut), table.slice(cut)]
    assert images_fingerprint(parts) == images_fingerprint([table])


def test_pixels_are_unknown_while_a_digest_is():
    table = image_table(
        source="s",
        role="far",
        group="g",
        split="test",
        view="raw",
        labels={"c": -1},
        images={"c": ["b", "a"]},
        digests={"a": bytes(32)},
    )
    assert images_fingerprint([table]).pixels is None


def class_rows(**change: object) -> pa.Table:
    row: dict[str, object] = dict.fromkeys(CLASS_SCHEMA.names)
    row |= {
        "source": "s",
        "class_id": "c",
        "role": "id",
        "group": "g",
        "label": 0,
        "name": "n",
        "wnids": [],
        "via": [],
    }
    return pa.Table.from_pylist([row | change], schema=CLASS_SCHEMA)


def test_evidence_and_distances_are_no_part_of_identity():
    a, b = class_rows(evidence="one", path=0.5), class_rows(evidence="two", path=0.25)
    assert classes_fingerprint(a) == classes_fingerprint(b) == by_the_contract(a, CLASS_IDENTITY)
    assert explanation_fingerprint(a) != explanation_fingerprint(b)


def test_the_tenth_digit_of_a_distance_does_not_count():
    a, b = class_rows(path=0.1234567891), class_rows(path=0.1234567892)
    assert explanation_fingerprint(a) == explanation_fingerprint(b)
