"""What verifies is whole: no field, no cell, no file can differ without being refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raising import raises
from tests.selection import cases
from wordnet_splits.base.errors import ManifestError, SplitsError
from wordnet_splits.benchmark.checks.verification import differences
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest, read_manifest
from wordnet_splits.benchmark.manifest.tables import (
    CLASS_SCHEMA,
    IMAGE_SCHEMA,
    classes_fingerprint,
    explanation_fingerprint,
    part_fingerprints,
)
from wordnet_splits.benchmark.resolve import find_manifest, load_manifest

DIGITS = find_manifest("digits")
CONTENT: dict[str, Any] = json.loads((DIGITS / "manifest.json").read_text())
PART = "images/test/digits-6-9.parquet"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every leaf, and of every list and object."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from leaves(one, (*path, key))


FIELDS = [path for path in leaves(CONTENT) if path and path[0] != "provenance"]


def other(value: Any) -> Any:
    """Return another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            hexadecimal = len(value) == 64
            return ("0" if value[:1] != "0" else "1") + value[1:] if hexadecimal else f"{value}x"
        case list():
            return value[:-1] if value else ["x"]
        case dict():
            return {**value, "another": 1}
    return 1


def refused(folder: Path) -> bool:
    try:
        return not verify_benchmark(read_manifest(folder)).ok
    except SplitsError:
        return True


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DIGITS, tmp_path / "digits"))


@pytest.fixture(scope="module")
def quick():
    """Draw and read once: what is altered here is neither the rules nor the pictures."""
    with pytest.MonkeyPatch.context() as patch:
        from wordnet_splits.benchmark.construct import digesting, run

        assigned, read = run.assign_classes, digesting.read_digests  # type: ignore[attr-defined]
        done: dict[Any, Any] = {}

        def assign_classes(recipe, seed, taxonomy):
            key = (recipe.name, seed)
            if key not in done:
                done[key] = assigned(recipe, seed, taxonomy)
            return done[key]

        def read_digests(source, classes, known, **options):
            key = (source.name, tuple(sorted(classes.items())), tuple(sorted(known.items())))
            if key not in done:
                done[key] = read(source, classes, known, **options)
            return done[key]

        patch.setattr(run, "assign_classes", assign_classes)
        patch.setattr(digesting, "read_digests", read_digests)
        yield


@pytest.fixture(scope="module")
def fresh() -> Manifest:
    return build_benchmark("digits").manifest


def test_a_sound_manifest_holds(digits):
    found = verify_benchmark(read_manifest(digits))
    assert found.ok
    assert all(c.ids == c.pixels == c.expected for c in found.checks if c.split != "classes")
    assert found.to_table().num_rows == len(found.groups)


@pytest.mark.parametrize(
    "name",
    [
        "digits",
        *(pytest.param(n, marks=pytest.mark.faults) for n in ("rungs-cifar100", "optimizers-mnist-small")),
    ],
)
def test_the_fresh_build_of_a_sound_manifest_is_written(name, tmp_path):
    assert verify_benchmark(load_manifest(name), out=tmp_path).ok
    assert load_manifest(tmp_path / name).fingerprint == load_manifest(name).fingerprint


@pytest.mark.parametrize("stray", [True, False])
def test_the_fresh_build_of_an_altered_manifest_is_not_written(stray, tmp_path):
    folder = Path(shutil.copytree(find_manifest("rungs-cifar100"), tmp_path / "frozen" / "rungs-cifar100"))
    data = json.loads((folder / "manifest.json").read_text())
    if stray:
        (folder / "images" / "notes.txt").write_text("mine")
    else:
        data["groups"][0]["actual"] += 1
        (folder / "manifest.json").write_text(json.dumps(data))
    assert not verify_benchmark(read_manifest(folder), out=tmp_path / "built").ok
    assert not (tmp_path / "built").exists()


def test_provenance_may_differ(digits):
    data = {**CONTENT, "provenance": {"pyarrow": "1.0"}}
    (digits / "manifest.json").write_text(json.dumps(data))
    assert verify_benchmark(read_manifest(digits)).ok


@pytest.mark.faults
@pytest.mark.parametrize("how", cases(["other", "null", "gone"], always="gone"))
def test_every_field_is_compared(digits, fresh, how):
    accepted = []
    for path in FIELDS:
        data = json.loads(json.dumps(CONTENT))
        holder = data
        for step in path[:-1]:
            holder = holder[step]
        was = holder[path[-1]]
        if how == "gone":
            del holder[path[-1]]
        else:
            holder[path[-1]] = None if how == "null" else other(was)
        if data == CONTENT:
            continue
        (digits / "manifest.json").write_text(json.dumps(data))
        with suppress(ManifestError):
            if not differences(read_manifest(digits), fresh):
                accepted.append(path)
    assert accepted == []


def cell(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_fixed_size_binary(kind):
        return bytes(32)
    if pa.types.is_floating(kind):
        return 0.125
    if pa.types.is_list(kind):
        return [] if value else [None]
    return "x" if pa.types.is_string(kind) and value is None else other(value)


TABLES = {"classes.parquet": CLASS_SCHEMA, PART: IMAGE_SCHEMA}
CELLS = [(name, column) for name, schema in TABLES.items() for column in schema.names]


def alter(path: Path, column: str, value: Any = ...) -> None:
    """Set the column of the second row to another value."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[1][column] = cell(rows[1][column], table.schema.field(column).type) if value is ... else value
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def sign(folder: Path) -> None:
    """Fill ``manifest.json`` with the fingerprints of the altered tables, as a careful forger would."""
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    prints = data["fingerprints"]
    classes = pq.read_table(folder / "classes.parquet")
    prints |= {"classes": classes_fingerprint(classes), "explanation": explanation_fingerprint(classes)}
    paths = [f"images/{row['split']}/{row['group']}.parquet" for row in prints["images"]]
    tables = [pq.read_table(folder / path) for path in paths]
    parts, whole = part_fingerprints(tables)
    for row, part in zip(prints["images"], parts, strict=True):
        row |= vars(part)
    data["fingerprint"] = prints["images_in_all"] = whole.images
    prints["pixels_in_all"] = whole.pixels
    path.write_text(json.dumps(data))


@pytest.mark.sampled("faults", one_in=5)
@pytest.mark.parametrize(("name", "column"), CELLS)
def test_every_cell_is_fingerprinted_and_compared(digits, quick, name, column):
    alter(digits / name, column)
    with pytest.raises(ManifestError):
        load_manifest(digits).images()
    assert refused(digits)
    sign(digits)
    assert refused(digits)


@pytest.mark.parametrize(
    ("name", "column"),
    [("classes.parquet", c) for c in ("source", "class_id", "name", "role", "group", "label")]
    + [(PART, c) for c in IMAGE_SCHEMA.names if c != "digest"],
)
def test_an_empty_cell_is_refused_at_load(digits, name, column):
    alter(digits / name, column, None)
    with raises(ManifestError, naming=column):
        load_manifest(digits)


@pytest.mark.parametrize("name", list(TABLES))
def test_a_column_more_less_or_of_another_type_is_refused_at_load(digits, name):
    path, table = digits / name, pq.read_table(digits / name)
    pq.write_table(table.append_column("more", table["source"]), path)
    with raises(ManifestError, naming="more"):
        load_manifest(digits)
    pq.write_table(table.drop_columns(["label"]), path)
    with raises(ManifestError, naming="label"):
        load_manifest(digits)
    at = table.column_names.index("label")
    pq.write_table(table.set_column(at, "label", table["label"].cast(pa.int64())), path)
    with raises(ManifestError, naming="label"):
        load_manifest(digits)


@pytest.mark.parametrize("take", [slice(1, None), slice(None, None, -1)])
def test_rows_left_out_or_in_another_order_are_refused(digits, quick, take):
    path = digits / PART
    table = pq.read_table(path)
    pq.write_table(table.take(list(range(len(table)))[take]), path)
    with raises(ManifestError, where="digits"):
        load_manifest(digits)
    sign(digits)
    assert refused(digits)


def test_a_table_altered_after_the_manifest_was_opened_is_refused_when_it_is_read(digits):
    manifest = load_manifest(digits)
    alter(digits / PART, "label")
    with raises(ManifestError, where="digits-6-9.parquet"):
        manifest.images("test", "digits-6-9")
    assert len(manifest.images("val")) == 120


def test_a_part_that_is_gone_is_a_problem_of_that_part_alone(digits):
    (digits / PART).unlink()
    found = verify_benchmark(read_manifest(digits))
    assert [(c.group, c.split) for c in found.checks if c.problems] == [("digits-6-9", "test")]
    assert all(c.ids == c.pixels == c.rule == 0 for c in found.checks)
    with raises(ManifestError, where="digits-6-9.parquet"):
        load_manifest(digits)


@pytest.mark.parametrize("name", ["notes.txt", "images/test/extra.parquet", "images/other/x", ".hidden"])
def test_a_stray_file_is_a_problem(digits, quick, name):
    (digits / name).parent.mkdir(exist_ok=True)
    (digits / name).touch()
    assert not verify_benchmark(read_manifest(digits)).ok


@pytest.mark.parametrize("name", ["digits@seed=1", "other"])
def test_a_folder_of_another_name_is_a_problem(digits, quick, name):
    folder = digits.rename(digits.with_name(name))
    assert {p.kind for p in verify_benchmark(read_manifest(folder)).problems} == {"name"}
