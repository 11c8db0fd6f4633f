"""Verifying finds every change of an output and its image; a build does not trust altered files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fix_resize import get_spec
from fix_resize.output import IMAGES, open_output
from fix_resize.pipeline import writing
from fix_resize.pipeline.building import PipelineSettings, build
from fix_resize.pipeline.selection import select_folder
from fix_resize.pipeline.verify import verify
from fix_resize.pipeline.writing import TABLES
from tests.fix_resize.sets import finished_shards, jpeg, make_folder, tree
from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError
from wordnet_splits.base.text_formats import CHECKSUM, write_sealed

FORMATS = ("png", "parquet")


def built(root: Path, out: Path, file_format: str = "png", spec: str = "fix", **options: bool) -> Path:
    settings = PipelineSettings(get_spec(spec), file_format=file_format, shard_size=4, **options)
    build(select_folder(root), out, settings)
    return out


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifteen images, and a truncated one."""
    root = make_folder(tmp_path_factory.mktemp("verify") / "pictures")
    (root / "class-2" / "cut.jpg").write_bytes(jpeg(1)[:-200])
    return root


@pytest.fixture(scope="module", params=FORMATS)
def sound(root: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output with rows in each of its tables."""
    lost = root / "class-2" / "lost.jpg"
    lost.write_bytes(jpeg(50))
    selection = select_folder(root)
    lost.unlink()
    out = tmp_path_factory.mktemp("sound") / "out"
    settings = PipelineSettings(get_spec("fix"), request.param, shard_size=4, allow_missing=True)
    build(selection, out, settings)
    return out


@pytest.fixture
def out(sound: Path, tmp_path: Path) -> Path:
    """A copy of the sound output, to be altered."""
    return Path(shutil.copytree(sound, tmp_path / "out"))


def found(out: Path, **options: Path) -> list[tuple[str, str | None]]:
    return [(problem.kind, problem.image_id) for problem in verify(out, **options).problems]


def rewrite(path: Path, change: Callable[[dict[str, object]], None], row: int) -> None:
    """Change one row of a Parquet file."""
    old = pq.read_table(path)
    rows = old.to_pylist()
    change(rows[row])
    pq.write_table(pa.Table.from_pylist(rows, schema=old.schema), path, row_group_size=100)


def test_a_sound_output_is_verified(out: Path) -> None:
    result = verify(out)
    assert (result.ok, result.images, result.problems) == (True, 15, ())
    assert verify(out, against=out).ok
    assert all(len(pq.read_table(out / table)) for table in TABLES)


def test_changed_pictures_are_named(out: Path) -> None:
    second = "class-0/picture 003"
    if (out / "data").is_dir():
        shard = sorted((out / "data").iterdir())[0]
        other = pq.read_table(shard)["image"][0].as_py()
        rewrite(shard, lambda row: row.update(image=other), 1)
    else:
        shutil.copy(out / "class-0" / "picture 000.png", out / "class-0" / "picture 003.png")
    assert found(out) == [("altered", second)]


def test_damaged_and_absent_pictures_are_named(out: Path) -> None:
    first, last = "class-0/picture 000", "class-2/picture 014"
    if (out / "data").is_dir():
        shards = sorted((out / "data").iterdir())
        rewrite(shards[0], lambda row: row.update(image={"bytes": b"x", "path": ""}), 0)
        last_shard = pq.read_table(shards[-1])
        pq.write_table(last_shard.slice(0, len(last_shard) - 1), shards[-1])
    else:
        (out / f"{first}.png").write_bytes(b"x")
        (out / f"{last}.png").unlink()
    assert found(out) == [("unreadable", first), ("absent", last)]


def test_what_no_picture_of_a_shard_shows_is_seen(root: Path, tmp_path: Path) -> None:
    out = built(root, tmp_path / "out", "parquet")
    shard = sorted((out / "data").iterdir())[0]
    whole = shard.read_bytes()
    rename = {"path": "other.png"}
    rewrite(shard, lambda row: row["image"].update(rename), 0)  # type: ignore[attr-defined]  # a struct
    assert found(out) == [("table", None)]
    shard.write_bytes(whole)
    assert found(out) == []
    rewrite(shard, lambda row: row.update(image=None), 1)
    assert found(out) == [("unreadable", "class-0/picture 003")]


def test_a_lost_shard_names_all_its_pictures(root: Path, tmp_path: Path) -> None:
    out = built(root, tmp_path / "out", "parquet")
    shard = sorted((out / "data").iterdir())[1]
    ids = pq.read_table(shard)["image_id"].to_pylist()
    shard.write_bytes(shard.read_bytes()[:-50])
    assert found(out) == [("unreadable", i) for i in ids]
    shard.unlink()
    assert found(out) == [("absent", i) for i in ids]


def test_a_class_moved_inside_a_shard_is_seen(root: Path, tmp_path: Path) -> None:
    out = built(root, tmp_path / "out", "parquet")
    rewrite(sorted((out / "data").iterdir())[0], lambda row: row.update(class_id="class-9"), 2)
    assert found(out) == [("altered", "class-0/picture 006")]


def test_what_is_no_table_is_not_hashed(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    whole = writing.checksum
    monkeypatch.setattr(writing, "checksum", lambda root, files: hashed.extend(files) or whole(root, files))
    (out / "missing.parquet").write_bytes(bytes(1000))
    with pytest.raises(DataError):
        verify(out)
    assert "images.parquet" in hashed
    assert "missing.parquet" not in hashed


def test_two_outputs_are_compared_image_by_image(root: Path, out: Path, tmp_path: Path) -> None:
    other = shutil.copytree(root, tmp_path / "pictures")
    shutil.copy(other / "class-0" / "picture 000.jpg", other / "class-0" / "picture 003.jpg")
    (other / "class-1" / "picture 001.jpg").unlink()
    shutil.copy(other / "class-2" / "picture 002.jpg", other / "class-2" / "new.jpg")
    frozen = built(other, tmp_path / "frozen")
    expected = [
        ("only-here", "class-1/picture 001"),
        ("only-there", "class-2/new"),
        ("different", "class-0/picture 003"),
    ]
    assert found(out, against=frozen) == found(out, against=frozen / "images.parquet") == expected
    other_spec = built(root, tmp_path / "fix-64", spec="fix-64")
    assert len(found(out, against=other_spec)) == 15


def test_what_is_no_output_is_refused_in_one_line(root: Path, out: Path) -> None:
    with raises(OutputError, where="pictures"):
        verify(root)
    with raises(DataError, where="images.parquet"):
        verify(out, against=root)
    (out / "images.parquet").write_bytes(b"x")
    with raises(DataError, where="images.parquet"):
        verify(out)
    (out / "output.json").write_text("{")
    with raises(DataError, where="output.json"):
        verify(out)


def alter(path: Path, field: str) -> None:
    """Change one field of a sealed JSON file."""
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, field: altered(content[field])}))


def altered(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else ("0" if value[:1] != "0" else "1") + value[1:]


@pytest.mark.parametrize("field", ["name", "images", "complete", "fingerprint"])
def test_an_altered_description_is_refused(out: Path, field: str) -> None:
    alter(out / "output.json", field)
    for read in (verify, open_output):
        with raises(DataError, where="output.json"):
            read(out)


@pytest.mark.parametrize(
    "field", ["images", "quarantined", "missing", "complete", "selection", "fingerprint"]
)
def test_a_number_that_the_tables_contradict_is_found_although_it_is_sealed(out: Path, field: str) -> None:
    path = out / "output.json"
    content = json.loads(path.read_text())
    del content[CHECKSUM]
    write_sealed(path, {**content, field: altered(content[field])})
    (problem,) = verify(out).problems
    assert (problem.kind, f" {field} " in problem.detail) == ("description", True)


def write_longer(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table]), path)


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("change", [write_longer, Path.unlink, put_pipe])
def test_an_altered_table_is_found(out: Path, table: str, change: Callable[[Path], object]) -> None:
    change(out / table)
    try:
        kinds = [kind for kind, _ in found(out)]
    except DataError as error:
        kinds = ["table"] if str(error.where).endswith(table) else []
    assert "table" in kinds


def test_a_row_of_another_image_is_found(root: Path, tmp_path: Path) -> None:
    out = built(root, tmp_path / "out", "parquet")
    first, second = pq.read_table(out / IMAGES)["image_id"].to_pylist()[:2]
    rewrite(out / IMAGES, lambda row: row.update(row=1), 0)
    assert {("table", None), ("altered", second), ("unlisted", None)} <= set(found(out)), first


def test_extra_files_and_images_are_found(out: Path) -> None:
    for name in ("stray.txt", "class-0/extra.png", "data/images-9.parquet"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(b"x")
        assert found(out) == [("unlisted", None)]
        (out / name).unlink()
    for shard in (out / "data").glob("*"):
        whole, table = shard.read_bytes(), pq.read_table(shard)
        pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), shard)
        assert found(out) == [("unlisted", None)]
        shard.write_bytes(whole)


@pytest.mark.parametrize("place", ["/dev/zero", "../elsewhere.png"])
def test_a_path_out_of_the_folder_is_not_read(out: Path, place: str) -> None:
    image_id = pq.read_table(out / IMAGES)["image_id"][0].as_py()
    rewrite(out / IMAGES, lambda row: row.update(file=place), 0)
    assert not verify(out).ok
    with raises(DataError, where="out"):
        open_output(out).pixels(image_id)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_shard_with_an_altered_marker_is_built_again(root: Path, tmp_path: Path, file_format: str) -> None:
    out = built(root, tmp_path / "out", file_format)
    whole = tree(out)
    for field in ("shard", "key", "images", "table", "data"):
        alter(finished_shards(out)[0], field)
        built(root, out, file_format)
        assert tree(out) == whole
    alter(out / ".shards" / "build.json", "selection")
    with raises(OutputError, where="out"):
        built(root, out, file_format)
