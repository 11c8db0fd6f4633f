"""Every field of every file of an output, altered: verifying sees it, and going on is not misled by it."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fix_resize import get_spec
from fix_resize.output import IMAGES, open_output
from fix_resize.pipeline.building import PipelineSettings, build
from fix_resize.pipeline.selection import select_folder
from fix_resize.pipeline.verify import verify
from fix_resize.pipeline.writing import TABLES
from tests.fix_resize.sets import finished_shards, jpeg, make_folder, tree
from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError
from wordnet_splits.base.schemas import CHECKSUM, write_sealed

SHARD = 4


def made(root: Path, out: Path, file_format: str) -> Path:
    """An output with something in each of its tables."""
    worklist = select_folder(root)
    lost = root / "class-2" / "lost.jpg"
    lost.unlink()
    settings = PipelineSettings(get_spec("fix"), file_format, shard_size=SHARD, allow_missing=True)
    build(worklist, out, settings)
    lost.write_bytes(jpeg(50))
    return out


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_folder(tmp_path_factory.mktemp("tampering") / "pictures")
    (root / "class-0" / "cut.jpg").write_bytes(jpeg(1)[:-200])
    (root / "class-1" / "notes.txt").write_text("no picture")
    (root / "class-2" / "lost.jpg").write_bytes(jpeg(50))
    return root


@pytest.fixture(scope="module", params=["png", "parquet"])
def sound(root: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(root, tmp_path_factory.mktemp("sound") / "out", request.param)


def altered(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, str):
        return ("0" if value[:1] != "0" else "1") + value[1:]
    return 1 if value is None else None


def alterations(value: Any) -> Iterator[tuple[str, Any]]:
    """Every way to alter one leaf of a JSON value, or to drop or add one key, each with its place."""
    if isinstance(value, dict):
        for key in value:
            yield f"{key} dropped", {k: v for k, v in value.items() if k != key}
            for place, other in alterations(value[key]):
                yield f"{key}.{place}", {**value, key: other}
        yield "key added", {**value, "extra": 1}
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield f"{number} dropped", value[:number] + value[number + 1 :]
            for place, other in alterations(item):
                yield f"{number}.{place}", [*value[:number], other, *value[number + 1 :]]
        yield "item added", [*value, *(value[:1] or [1])]
    else:
        yield "altered", altered(value)


def seen(out: Path) -> bool:
    """Whether verifying finds anything, or refuses the output."""
    try:
        return not verify(out).ok
    except (DataError, OutputError):
        return True


def test_a_sound_output_has_something_of_everything(out: Path) -> None:
    assert verify(out).ok
    assert all(len(pq.read_table(out / table)) for table in TABLES)


def test_every_field_of_the_description(out: Path) -> None:
    path = out / "output.json"
    said = json.loads(path.read_text())
    for place, other in alterations(said):
        path.write_text(json.dumps(other))
        assert seen(out), place
        with pytest.raises(DataError):
            open_output(out)


@pytest.mark.parametrize(
    "field", ["images", "quarantined", "missing", "complete", "selection", "fingerprint"]
)
def test_a_figure_that_the_tables_contradict_is_named_even_where_it_was_sealed_anew(
    out: Path, field: str
) -> None:
    path = out / "output.json"
    said = json.loads(path.read_text())
    del said[CHECKSUM]
    write_sealed(path, {**said, field: altered(said[field])})
    problems = verify(out).problems
    assert [p.kind for p in problems] == ["description"]
    assert f"has {field} " in problems[0].detail


@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_every_table(out: Path, table: str) -> None:
    before = pq.read_table(out / table)
    rows = before.to_pylist()
    for name in before.column_names:
        changed = copy.deepcopy(rows)
        changed[0][name] = altered(changed[0][name])
        pq.write_table(pa.Table.from_pylist(changed, schema=before.schema), out / table)
        assert seen(out), name
    for other in (before.slice(1), pa.concat_tables([before, before]), before.append_column("more", [rows])):
        pq.write_table(other, out / table)
        assert seen(out)
    (out / table).unlink()
    assert seen(out)


def test_an_altered_row_is_named_with_its_picture(root: Path, tmp_path: Path) -> None:
    out = made(root, tmp_path / "out", "parquet")
    before = pq.read_table(out / IMAGES)
    rows = before.to_pylist()
    rows[0]["row"] = rows[1]["row"]
    pq.write_table(pa.Table.from_pylist(rows, schema=before.schema), out / IMAGES)
    found = {(p.kind, p.image_id) for p in verify(out).problems}
    assert {("table", None), ("altered", rows[1]["image_id"]), ("unlisted", None)} <= found


def test_extra_files_and_pictures(out: Path) -> None:
    for name in ("stray.txt", "class-0/extra.png", "data/images-9.parquet"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(b"x")
        assert [p.kind for p in verify(out).problems] == ["unlisted"]
        (out / name).unlink()
    for shard in (out / "data").glob("*"):
        whole, table = shard.read_bytes(), pq.read_table(shard)
        pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), shard)
        assert [p.kind for p in verify(out).problems] == ["unlisted"]
        shard.write_bytes(whole)


def test_a_table_that_points_out_of_the_folder_reads_nothing_there(out: Path, tmp_path: Path) -> None:
    before = pq.read_table(out / IMAGES)
    rows = before.to_pylist()
    for place in ("/dev/zero", "../elsewhere.png"):
        changed = [{**rows[0], "file": place}, *rows[1:]]
        pq.write_table(pa.Table.from_pylist(changed, schema=before.schema), out / IMAGES)
        assert any("leaves its folder" in p.detail for p in verify(out).problems)
        with raises(DataError, where="out"):
            open_output(out).pixels(rows[0]["image_id"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("table", TABLES)
def test_what_never_ends_in_the_place_of_a_table_is_a_problem(
    out: Path, table: str, put: Callable[[Path], None]
) -> None:
    (out / table).unlink()
    put(out / table)
    assert seen(out)


@pytest.mark.parametrize("file_format", ["png", "parquet"])
def test_every_field_of_what_a_build_remembers(root: Path, tmp_path: Path, file_format: str) -> None:
    """An altered marker counts for nothing: its shard is done again, and every byte is as it was."""
    out = tmp_path / "out"
    settings = PipelineSettings(get_spec("fix"), file_format, shard_size=SHARD)
    build(select_folder(root), out, settings)
    whole = tree(out)
    marker = finished_shards(out)[0]
    assert not json.loads(marker.read_text())["missing"]
    said = json.loads(marker.read_text())
    for place, other in alterations(said):
        marker.write_text(json.dumps(other))
        build(select_folder(root), out, settings)
        assert tree(out) == whole, place
    begun = out / ".shards" / "build.json"
    said = json.loads(begun.read_text())
    for place, other in alterations(said):
        if place != "key added":
            begun.write_text(json.dumps(other))
            with raises(OutputError, where="out"):
                build(select_folder(root), out, settings)


# -- pictures that change after they were built --------------------------------------------------------------


def replace_a_picture(root: Path) -> None:
    shutil.copy(root / "class-1" / "picture 001.jpg", root / "class-0" / "picture 000.jpg")


def link_a_picture_elsewhere(root: Path) -> None:
    (root / "class-0" / "picture 000.jpg").unlink()
    (root / "class-0" / "picture 000.jpg").symlink_to(root / "class-1" / "picture 001.jpg")


def mend_a_picture(root: Path) -> None:
    (root / "class-0" / "cut.jpg").write_bytes(jpeg(1))


@pytest.mark.parametrize(
    "change", [replace_a_picture, link_a_picture_elsewhere, mend_a_picture], ids=lambda c: c.__name__
)
def test_a_changed_picture_is_built_again(root: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    mine = Path(shutil.copytree(root, tmp_path / "pictures"))
    settings = PipelineSettings(get_spec("fix"), shard_size=SHARD)
    first = build(select_folder(mine), tmp_path / "out", settings)
    change(mine)
    again = build(select_folder(mine), tmp_path / "out", settings)
    fresh = build(select_folder(mine), tmp_path / "fresh", settings)
    assert again.built_shards == 1
    assert again.fingerprint == fresh.fingerprint != first.fingerprint
    assert again.quarantined == fresh.quarantined


def test_other_pictures_of_the_same_names_under_another_root(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "others"
    for number, path in enumerate(sorted(root.rglob("*.jpg"))):
        target = other / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(jpeg(number + 70))
    settings = PipelineSettings(get_spec("fix"), shard_size=SHARD)
    first = build(select_folder(root), tmp_path / "out", settings)
    second = build(select_folder(other), tmp_path / "out", settings)
    assert second.reused_shards == 0
    assert second.fingerprint == build(select_folder(other), tmp_path / "fresh", settings).fingerprint
    assert second.fingerprint != first.fingerprint
