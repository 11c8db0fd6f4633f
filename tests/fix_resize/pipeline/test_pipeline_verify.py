"""Verifying finds every change of an output, and names the image."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fix_resize import get_spec
from fix_resize.pipeline import writing
from fix_resize.pipeline.building import PipelineSettings, build
from fix_resize.pipeline.selection import select_folder
from fix_resize.pipeline.verify import verify
from tests.fix_resize.sets import make_folder
from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError


def built(root: Path, out: Path, file_format: str = "png", spec: str = "fix") -> Path:
    build(select_folder(root), out, PipelineSettings(get_spec(spec), file_format=file_format, shard_size=4))
    return out


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("verify") / "pictures")


@pytest.fixture(scope="module", params=["png", "parquet"])
def sound(root: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(root, tmp_path_factory.mktemp("sound") / "out", request.param)


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
        pq.write_table(pq.read_table(shards[-1]).slice(0, 2), shards[-1])
    else:
        (out / f"{first}.png").write_bytes(b"x")
        (out / f"{last}.png").unlink()
    assert found(out) == [("unreadable", first), ("absent", last)]


def test_what_no_picture_of_a_shard_shows_is_seen(root: Path, tmp_path: Path) -> None:
    out = built(root, tmp_path / "out", "parquet")
    shard = sorted((out / "data").iterdir())[0]
    whole = shard.read_bytes()
    rewrite(shard, lambda row: row["image"].update(path="other.png"), 0)  # type: ignore[attr-defined]
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


def test_a_picture_that_no_row_names_is_seen(out: Path) -> None:
    (out / "class-0").mkdir(exist_ok=True)
    (out / "class-0" / "extra.png").write_bytes(b"x")
    assert found(out) == [("unlisted", None)]


def test_a_changed_table_is_seen(out: Path) -> None:
    rewrite(out / "images.parquet", lambda row: row.update(label=7), 3)
    kinds = [kind for kind, _ in found(out)]
    assert "table" in kinds
    rewrite(out / "images.parquet", lambda row: row.update(pixel_sha256=b"\0" * 32), 4)
    assert ("altered", "class-0/picture 012") in found(out)


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
