"""Fingerprints: the contract's rows, whatever library wrote the table."""

from __future__ import annotations

import hashlib
import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from wordnet_splits.benchmark.manifest import fingerprint
from wordnet_splits.benchmark.manifest.tables import CLASS_SCHEMA, IMAGE_SCHEMA, image_table

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
    found = fingerprint.of_images([table])
    assert found.images == by_the_contract(table, fingerprint.IMAGE_IDENTITY)
    assert found.pixels == by_the_contract(table, fingerprint.PIXEL_IDENTITY)


@given(IMAGE_ROWS, st.integers(0, 6))
def test_cutting_a_table_changes_nothing(rows, cut):
    table = pa.Table.from_pylist(rows, schema=IMAGE_SCHEMA)
    parts = [table.slice(0, cut), table.slice(cut)]
    assert fingerprint.of_images(parts) == fingerprint.of_images([table])


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
    assert fingerprint.of_images([table]).pixels is None


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
    assert (
        fingerprint.of_classes(a)
        == fingerprint.of_classes(b)
        == by_the_contract(a, fingerprint.CLASS_IDENTITY)
    )
    assert fingerprint.of_explanation(a) != fingerprint.of_explanation(b)


def test_the_tenth_digit_of_a_distance_does_not_count():
    a, b = class_rows(path=0.1234567891), class_rows(path=0.1234567892)
    assert fingerprint.of_explanation(a) == fingerprint.of_explanation(b)
