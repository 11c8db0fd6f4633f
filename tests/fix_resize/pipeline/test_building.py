"""What a build makes: the pixels of the recipe, the same whoever runs it, and nothing silently skipped."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from fix_resize import apply, get_spec
from fix_resize.decode import decode
from fix_resize.output import IMAGE_SCHEMA, open_output
from fix_resize.pipeline.building import BuildResult, PipelineSettings, build
from fix_resize.pipeline.selection import select_folder
from fix_resize.pipeline.shards import ShardJob, run_shard
from fix_resize.pipeline.writing import UNFINISHED, BuildItem
from tests.fix_resize.sets import finished_shards, jpeg, make_folder, tree
from tests.raising import raises
from tools.golden_tables import frozen
from wordnet_splits.base.digests import digest_file, digest_pixels
from wordnet_splits.base.errors import MissingImageError, OutputError
from wordnet_splits.datasets.sources import open_source

FIX = get_spec("fix")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "pictures")


def made(root: Path, out: Path, **options: object) -> BuildResult:
    settings = {"spec": FIX, "shard_size": 4, **options}
    return build(select_folder(root), out, PipelineSettings(**settings))


def table(out: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(out / "images.parquet").to_pylist()
    return rows


def test_photographs_come_out_as_frozen(real_data: Path, tmp_path: Path) -> None:
    made(real_data / "imagenet" / "train", tmp_path / "out", shard_size=100)
    rows = {str(row["image_id"]).rpartition("/")[2]: row for row in table(tmp_path / "out")}
    *golden, _ = frozen("imagenet")
    assert rows.keys() == {row.id for row in golden}
    assert all(rows[row.id]["pixel_sha256"] == bytes.fromhex(row.fix) for row in golden)


@pytest.mark.parametrize("file_format", ["png", "parquet"])
def test_pixels_and_table_are_those_of_the_recipe(pictures: Path, tmp_path: Path, file_format: str) -> None:
    built = made(pictures, tmp_path / "out", file_format=file_format)
    output = open_output(tmp_path / "out")
    rows = table(tmp_path / "out")
    files = sorted(pictures.rglob("*.jpg"))
    ids = [path.relative_to(pictures).with_suffix("").as_posix() for path in files]
    assert [row["image_id"] for row in rows] == ids
    assert (built.about.images, built.complete, output.spec_id, len(output)) == (15, True, FIX.id, 15)
    for path, row in zip(files, rows, strict=True):
        image = decode(path.read_bytes()).image
        expected = apply(FIX, image)
        np.testing.assert_array_equal(output.pixels(str(row["image_id"])), expected)
        assert row["pixel_sha256"] == digest_pixels(expected)
        assert row["digest"] == digest_file(path.read_bytes())
        assert (row["width"], row["height"], row["mode"]) == (32, 32, "RGB")
        assert (row["source_width"], row["source_height"]) == image.size
        assert (row["class_id"], row["spec"], row["source_mode"]) == (path.parent.name, FIX.id, "RGB")
    assert pq.read_schema(tmp_path / "out" / "images.parquet").metadata[b"resize-spec"] == FIX.id.encode()


def test_a_png_names_its_spec_and_keeps_its_name(pictures: Path, tmp_path: Path) -> None:
    made(pictures, tmp_path / "out")
    with Image.open(tmp_path / "out" / "class-0" / "picture 000.png") as image:
        assert image.info["resize-spec"] == FIX.id
        np.testing.assert_array_equal(
            np.asarray(image),
            apply(FIX, decode((pictures / "class-0" / "picture 000.jpg").read_bytes()).image),
        )


def test_formats_shards_and_backends_give_one_fingerprint(pictures: Path, tmp_path: Path) -> None:
    one = made(pictures, tmp_path / "a", backend="pillow", shard_size=1000)
    for name, options in {
        "b": {"backend": "numpy", "shard_size": 1},
        "c": {"backend": "numba", "shard_size": 7, "file_format": "parquet"},
        "d": {"backend": "auto"},
    }.items():
        assert made(pictures, tmp_path / name, **options).fingerprint == one.fingerprint
    assert made(pictures, tmp_path / "e", spec=get_spec("fix-64")).fingerprint != one.fingerprint


def test_processes_give_the_same_bytes_as_one(pictures: Path, tmp_path: Path) -> None:
    made(pictures, tmp_path / "one")
    made(pictures, tmp_path / "two", workers=2)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_the_order_of_files_does_not_matter(pictures: Path, tmp_path: Path) -> None:
    other = tmp_path / "copied backwards"
    for path in sorted(pictures.rglob("*.jpg"), reverse=True):
        target = other / path.relative_to(pictures)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    assert made(other, tmp_path / "b").fingerprint == made(pictures, tmp_path / "a").fingerprint


def test_a_second_run_does_nothing_again(pictures: Path, tmp_path: Path) -> None:
    first = made(pictures, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.png")}
    marks = {path: path.stat().st_mtime_ns for path in finished_shards(tmp_path / "out")}
    again = made(pictures, tmp_path / "out", workers=2)
    assert (first.built_shards, first.reused_shards, again.built_shards, again.reused_shards) == (4, 0, 0, 4)
    assert again.fingerprint == first.fingerprint
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert marks == {path: path.stat().st_mtime_ns for path in marks}


@pytest.mark.parametrize(("identify", "noticed"), [("stat", False), ("digest", True)])
def test_a_picture_replaced_at_equal_size_and_time(tmp_path: Path, identify: str, noticed: bool) -> None:
    root = tmp_path / "root"
    root.mkdir()
    path, other = root / "one.bmp", tmp_path / "other.bmp"
    for place, colour in ((path, "teal"), (other, "olive")):
        Image.new("RGB", (40, 40), colour).save(place)  # BMP: the size does not depend on the content
    first = made(root, tmp_path / "out", identify=identify)
    before = path.stat()
    path.write_bytes(other.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    again = made(root, tmp_path / "out", identify=identify)
    assert (again.built_shards == 1, again.fingerprint != first.fingerprint) == (noticed, noticed)
    assert made(root, tmp_path / "out", identify=identify).reused_shards == 1


def _cut_picture(out: Path) -> None:
    path = out / "class-1" / "picture 001.png"
    path.write_bytes(path.read_bytes()[:-1])


def _lose_picture(out: Path) -> None:
    (out / "class-1" / "picture 001.png").unlink()


def _cut_marker(out: Path) -> None:
    path = finished_shards(out)[1]
    path.write_bytes(path.read_bytes()[:-20])


def _cut_table(out: Path) -> None:
    path = finished_shards(out)[1].with_suffix(".parquet")
    path.write_bytes(path.read_bytes()[:-1])


def _lose_tables(out: Path) -> None:
    for path in out.glob("*.parquet"):
        path.unlink()
    (out / "output.json").unlink()


@pytest.mark.parametrize(
    ("harm", "redone"),
    [(_cut_picture, 1), (_lose_picture, 1), (_cut_marker, 1), (_cut_table, 1), (_lose_tables, 0)],
)
def test_what_is_damaged_is_done_again_and_nothing_else(
    pictures: Path, tmp_path: Path, harm: Callable[[Path], None], redone: int
) -> None:
    out = tmp_path / "out"
    made(pictures, out)
    whole = tree(out)
    harm(out)
    assert tree(out) != whole
    assert made(pictures, out).built_shards == redone
    assert tree(out) == whole


def test_unfinished_files_are_swept(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made(pictures, out)
    whole = tree(out)
    (out / ".shards" / "unfinished").mkdir(exist_ok=True)
    (out / ".shards" / "unfinished" / "half").write_bytes(b"x")
    made(pictures, out)
    assert tree(out) == whole


def test_another_build_is_not_mixed_in(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made(pictures, out)
    for change in ({"spec": get_spec("fix-64")}, {"file_format": "parquet"}):
        with pytest.raises(OutputError):
            made(pictures, out, **change)
    (pictures / "class-0" / "new.jpg").write_bytes(jpeg(99))
    with pytest.raises(OutputError):
        made(pictures, out)
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.txt").write_text("x")
    with pytest.raises(OutputError) as caught:
        made(pictures, full)
    assert caught.value.where == str(full)
    assert [p.name for p in full.iterdir()] == ["thesis.txt"]
    with pytest.raises(OutputError):
        made(pictures, pictures / "out")


def saved(image: Image.Image, file_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def test_notes_and_quarantined_images_are_in_the_tables(tmp_path: Path) -> None:
    rgb = Image.open(io.BytesIO(jpeg(1))).convert("RGB")
    kept = {
        "alpha.png": (saved(rgb.convert("RGBA"), "PNG"), "alpha"),
        "grey.png": (saved(rgb.convert("L"), "PNG"), ""),
    }
    set_aside = {
        "cut.jpg": (jpeg(2)[:-200], "truncated"),
        "long.png": (saved(Image.new("RGB", (40_000, 1)), "PNG"), "aspect"),
        "text.jpg": (b"not an image", "unidentified"),
    }
    root = tmp_path / "all kinds"
    root.mkdir()
    for name, (data, _) in (kept | set_aside).items():
        (root / name).write_bytes(data)
    (root / "notes.txt").write_text("no image, and said so")
    built = made(root, tmp_path / "out")
    rows = {row["image_id"]: row["notes"] for row in table(tmp_path / "out")}
    assert rows == {name.rpartition(".")[0]: note for name, (_, note) in kept.items()}
    out = pq.read_table(tmp_path / "out" / "quarantine.parquet").to_pylist()
    assert {row["image_id"]: row["reason"] for row in out} == {
        name.rpartition(".")[0]: reason for name, (_, reason) in set_aside.items()
    }
    assert list(built.quarantined) == out
    assert all(" at 0x" not in row["detail"] for row in out)
    assert (built.complete, built.about.images, built.about.quarantined) == (True, 2, 3)
    assert built.about.unexpected == {"folder": 1}


def test_names_that_differ_in_nothing_but_the_extension_are_kept_whole(tmp_path: Path) -> None:
    root = tmp_path / "names"
    root.mkdir()
    for n, name in enumerate(["a.jpg", "a.jpeg", "b.jpg", "a.jpg.jpg"]):
        (root / name).write_bytes(jpeg(n))
    (root / "below").mkdir()
    (root / "below" / "a.JPG").write_bytes(jpeg(9))
    Path(os.fsdecode(bytes(root / "below") + b"/\xff.jpg")).write_bytes(jpeg(3))
    assert made(root, tmp_path / "out").about.unexpected == {"folder": 1}
    names = {row["image_id"]: row["class_id"] for row in table(tmp_path / "out")}
    assert names == {"a.jpg": "", "a.jpeg": "", "b.jpg": "", "a.jpg.jpg": "", "below/a": "below"}
    assert (tmp_path / "out" / "a.jpg.png").is_file()
    output = open_output(tmp_path / "out")
    np.testing.assert_array_equal(output.pixels("below/a"), apply(FIX, decode(jpeg(9)).image))


def test_an_image_that_vanishes_is_missing_until_it_is_back(pictures: Path, tmp_path: Path) -> None:
    selection = select_folder(pictures)
    lost = pictures / "class-1" / "picture 001.jpg"
    data = lost.read_bytes()
    lost.unlink()
    with raises(MissingImageError, where="folder", naming=("missing", "class-1/picture", "001")):
        build(selection, tmp_path / "out", PipelineSettings(FIX, shard_size=4))
    assert not (tmp_path / "out" / "output.json").exists()
    part = build(selection, tmp_path / "out", PipelineSettings(FIX, shard_size=4, allow_missing=True))
    assert (part.complete, part.about.images, len(part.missing)) == (False, 14, 1)
    assert pq.read_table(tmp_path / "out" / "missing.parquet")["kind"].to_pylist() == ["missing"]
    lost.write_bytes(data)
    whole = made(pictures, tmp_path / "out")
    assert (whole.complete, whole.built_shards, whole.about.images) == (True, 1, 15)
    assert whole.fingerprint == made(pictures, tmp_path / "undisturbed").fingerprint


def test_an_image_with_another_digest_is_not_taken_for_the_frozen_one(tmp_path: Path) -> None:
    source = open_source("digits")
    ids = ["3", "4"]
    items = tuple(
        BuildItem("digits", i, "0", "known", "test", 0, digest, f"test/0/{i}.png")
        for i, digest in zip(ids, [source.digest(source.read(["3"])[0]), b"\0" * 32], strict=True)
    )
    job = ShardJob("test-00000-of-00001", tmp_path, FIX, "png", "pillow", items, {"known": source})
    (tmp_path / UNFINISHED).mkdir(parents=True)
    outcome = run_shard(job)
    assert outcome.images == 1
    assert [(m["image_id"], m["kind"]) for m in outcome.missing] == [("4", "altered")]
    assert pq.read_schema(tmp_path / job.table).names == IMAGE_SCHEMA.names


def test_shards_load_as_images_with_datasets(pictures: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    made(pictures, tmp_path / "out", file_format="parquet")
    loaded = datasets.load_dataset(
        "parquet", data_dir=str(tmp_path / "out"), cache_dir=str(tmp_path / "cache")
    )["images"]
    assert isinstance(loaded.features["image"], datasets.Image)
    assert len(loaded) == 15
    output = open_output(tmp_path / "out")
    for row in loaded:
        np.testing.assert_array_equal(np.asarray(row["image"]), output.pixels(row["image_id"]))
        assert row["class_id"] == row["image_id"].split("/")[0]


def test_parquet_bytes_do_not_depend_on_when_they_are_written(pictures: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        made(pictures, tmp_path / name, file_format="parquet")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert pa.types.is_struct(pq.read_schema(next((tmp_path / "a" / "data").iterdir())).field("image").type)


def replace_image(root: Path) -> None:
    shutil.copy(root / "class-1" / "picture 001.jpg", root / "class-0" / "picture 000.jpg")


def link_image(root: Path) -> None:
    (root / "class-0" / "picture 000.jpg").unlink()
    (root / "class-0" / "picture 000.jpg").symlink_to(root / "class-1" / "picture 001.jpg")


def mend_image(root: Path) -> None:
    (root / "class-0" / "cut.jpg").write_bytes(jpeg(1))


@pytest.mark.parametrize("change", [replace_image, link_image, mend_image], ids=lambda c: c.__name__)
def test_a_changed_image_is_built_again(
    pictures: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    (pictures / "class-0" / "cut.jpg").write_bytes(jpeg(1)[:-200])
    first = made(pictures, tmp_path / "out")
    change(pictures)
    again = made(pictures, tmp_path / "out")
    fresh = made(pictures, tmp_path / "fresh")
    assert again.built_shards == 1
    assert again.fingerprint == fresh.fingerprint != first.fingerprint
    assert again.quarantined == fresh.quarantined


def test_other_images_of_the_same_names_under_another_root(pictures: Path, tmp_path: Path) -> None:
    other = tmp_path / "others"
    for number, path in enumerate(sorted(pictures.rglob("*.jpg"))):
        target = other / path.relative_to(pictures)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(jpeg(number + 70))
    first = made(pictures, tmp_path / "out")
    second = made(other, tmp_path / "out")
    assert second.reused_shards == 0
    assert second.fingerprint == made(other, tmp_path / "fresh").fingerprint != first.fingerprint
