"""What the audit is made of: names matched, pictures drawn and measured, histograms and grids."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from fix_resize.auditing.audit import audit_pictures, fix_at, match_names
from fix_resize.auditing.measurements import measure, sample_ids
from fix_resize.auditing.pictures import IndexedPictures, open_pictures
from fix_resize.auditing.plots import Histogram, save_grid, save_histograms
from fix_resize.auditing.smoothness import total_variation
from fix_resize.pipeline.building import PipelineSettings, build
from fix_resize.pipeline.selection import select_folder
from fix_resize.resize import apply
from fix_resize.spec import get_spec
from tests.fix_resize.made_photos import photo, save
from wordnet_splits.base.errors import DataError, OutputError, SourceError
from wordnet_splits.finding import load_manifest
from wordnet_splits.packed.pack import pack


def stored(*names: str) -> IndexedPictures:
    return IndexedPictures("set", list(names), lambda row: Image.fromarray(photo(row, 8, 8)))


def test_names_match_up_to_the_folders_above() -> None:
    found = match_names(["out/a/1", "out/a/2", "out/b/1"], stored("raw/a/1", "raw/b/1", "raw/c/9"))
    assert found == {"out/a/1": "raw/a/1", "out/b/1": "raw/b/1"}


def test_equal_names_match_whole() -> None:
    assert match_names(["a/1", "b/1"], stored("a/1", "b/1", "c/1")) == {"a/1": "a/1", "b/1": "b/1"}


def test_as_many_parts_of_a_name_are_compared_as_match_most() -> None:
    # one deep match by chance does not keep the other pictures from their originals
    found = match_names(["x/1", "x/2", "x/3"], stored("x/1", "y/2", "z/3"))
    assert found == {"x/1": "x/1", "x/2": "y/2", "x/3": "z/3"}


def test_a_name_that_two_pictures_have_is_nobodys() -> None:
    assert match_names(["p/1", "q/1", "p/2"], stored("r/1", "r/2")) == {"p/2": "r/2"}
    with pytest.raises(SourceError, match="no original has the name"):
        match_names(["p/1", "q/1"], stored("r/1"))


def test_a_draw_depends_on_the_names_alone() -> None:
    names = [f"n{i}" for i in range(100)]
    sample = sample_ids(names, 10)
    assert sample == sorted(sample) == sample_ids(names[::-1], 10)
    assert set(sample) < set(sample_ids(names, 11))
    assert sample_ids(names, None) == sample_ids(names, 1000) == sorted(names)
    assert sample != sorted(names)[:10]


def test_the_recipe_at_other_sizes() -> None:
    assert fix_at((32, 32)).id == get_spec("fix").id
    assert fix_at((64, 64)).id == get_spec("fix-64").id
    assert fix_at((224, 224)).side == 224
    for size in ((32, 64), (300, 300)):
        with pytest.raises(DataError, match="squares of up to 256"):
            fix_at(size)


def test_measuring_in_blocks_is_measuring_one_by_one() -> None:
    names = [f"{i:04}" for i in range(1100)]
    pixels = np.random.default_rng(60).integers(0, 256, (1100, 5, 6, 3), dtype=np.uint8)
    pictures = IndexedPictures("set", names[::-1], lambda row: Image.fromarray(pixels[1099 - row]))
    found = measure(pictures)
    assert (found.ids, found.size, found.skipped) == (tuple(names), (5, 6), ())
    np.testing.assert_array_equal(found.scores.variation, total_variation(pixels))


def test_pictures_too_small_to_measure_are_left_out() -> None:
    sizes = [(1, 8), (8, 8), (8, 8)]
    pictures = IndexedPictures("set", ["a", "b", "c"], lambda row: Image.fromarray(photo(row, *sizes[row])))
    found = measure(pictures)
    assert found.ids == ("b", "c")
    assert [(entry.image_id, entry.detail) for entry in found.skipped] == [("a", "1 x 8 pixels are too few")]


def test_only_pictures_that_have_an_original_decide(tmp_path: Path) -> None:
    fixed = {f"{n}": apply(get_spec("fix"), Image.fromarray(photo(n))) for n in range(6)}
    noise = np.random.default_rng(62).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    mine = save(tmp_path / "set", fixed | {f"other{n}": noise[n] for n in range(6)})
    originals = save(tmp_path / "originals", {f"{n}": photo(n) for n in range(6)})
    found = open_pictures(str(mine))
    report = audit_pictures(found, found, open_pictures(str(originals)))
    assert (report.audit.verdict, report.pairs, len(report.scores)) == ("clean", 6, 12)


@pytest.mark.parametrize("column", ["image", "img"])
def test_parquet_as_datasets_writes_it(column: str, tmp_path: Path) -> None:
    pictures = {f"c{n % 2}/{n}": photo(n, 8, 8) for n in range(6)}
    (tmp_path / "data").mkdir()
    for shard in range(2):
        rows = []
        for name, pixels in list(pictures.items())[shard * 3 : shard * 3 + 3]:
            buffer = io.BytesIO()
            Image.fromarray(pixels).save(buffer, "PNG")
            rows.append({column: {"bytes": buffer.getvalue(), "path": f"{name}.png"}, "label": 0})
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data" / f"train-{shard}.parquet")
    pq.write_table(pa.table({"image_id": ["x"]}), tmp_path / "images.parquet")
    found = open_pictures(str(tmp_path))
    assert found.ids == tuple(sorted(pictures))
    for image_id, image in found.read(["c1/5", "c0/2"]):
        np.testing.assert_array_equal(np.asarray(image), pictures[image_id])


def test_rows_without_a_name_of_their_own(tmp_path: Path) -> None:
    files = [save(tmp_path / "png", {str(n): photo(n, 4, 4)}) / f"{n}.png" for n in range(3)]
    data = [file.read_bytes() for file in files]
    folder = tmp_path / "parquet"
    folder.mkdir()
    pq.write_table(pa.table({"image": data}), folder / "a.parquet")
    paths = [{"bytes": b, "path": p} for b, p in zip(data, ["x.png", "x.png", None], strict=True)]
    pq.write_table(pa.Table.from_pylist([{"image": row} for row in paths]), folder / "b.parquet")
    found = open_pictures(str(folder))
    named = ["parquet/a/0", "parquet/a/1", "parquet/a/2", "parquet/b/1", "parquet/b/2", "x"]
    assert list(found.ids) == named
    assert len(measure(found).ids) == 6


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SourceError, match=r"bad\.parquet: is not a Parquet file"):
        open_pictures(str(tmp_path))


def test_a_pipe_is_no_parquet_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "images.parquet")
    with pytest.raises(SourceError, match=r"images\.parquet: is not a regular file"):
        open_pictures(str(tmp_path))


def test_what_a_dictionary_repeats_stays_one_and_names_are_bounded(tmp_path: Path) -> None:
    data = (save(tmp_path / "png", {"a": photo(1, 4, 4)}) / "a.png").read_bytes()
    for folder, name in (("good", "a"), ("bad", "a" * 2000)):
        (tmp_path / folder).mkdir()
        rows = [{"image": {"bytes": data, "path": f"{n}{name}.png"}} for n in range(600)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / folder / "x.parquet")
    assert len(measure(open_pictures(str(tmp_path / "good"))).ids) == 600
    with pytest.raises(SourceError, match="a name of more than 1,024 bytes"):
        open_pictures(str(tmp_path / "bad"))


def test_manifests_and_packed_stores(tmp_path: Path) -> None:
    known, other = open_pictures("digits:digits-0-5"), open_pictures("digits:digits-6-9:test")
    report = audit_pictures(known, other)
    assert (report.size, len(report.scores)) == ((8, 8), len(known.ids))
    pack(load_manifest("digits"), tmp_path / "packed", groups=["digits-0-5"], splits=["test"])
    again = audit_pictures(open_pictures(f"{tmp_path / 'packed'}:digits-0-5"), other)
    assert again.scores.equals(report.scores)
    assert again.audit == report.audit


@pytest.mark.parametrize("file_format", ["png", "parquet"])
def test_what_the_pipeline_wrote(file_format: str, tmp_path: Path) -> None:
    pictures = {f"{group}/{n}": photo(n, 40, 50) for n, group in enumerate("aab")}
    originals = save(tmp_path / "in", pictures)
    settings = PipelineSettings(get_spec("fix"), file_format)
    build(select_folder(originals), tmp_path / "out", settings)
    found = open_pictures(str(tmp_path / "out"))
    assert found.ids == tuple(sorted(pictures))
    for image_id, image in found.read(found.ids):
        expected = apply(get_spec("fix"), Image.fromarray(pictures[image_id]))
        np.testing.assert_array_equal(np.asarray(image), expected)
    report = audit_pictures(found, found, open_pictures(str(originals)))
    assert (report.audit.verdict, report.pairs) == ("clean", 3)
    assert report.scores["difference"].to_pylist() == [0, 0, 0]


def test_a_panel_of_each_histogram_and_no_date(tmp_path: Path) -> None:
    rng = np.random.default_rng(61)
    reference = rng.gamma(9, 5, 300)
    histograms = [
        Histogram(title, "$label", rng.gamma(9, 5, 50), alarmed=alarmed, fix_variation=reference)
        for alarmed in (False, True)
        for title in ("one", "two", "$three")
    ]
    save_histograms(histograms, "reference", reference, tmp_path / "x.svg")
    first = (tmp_path / "x.svg").read_bytes()
    save_histograms(histograms, "reference", reference, tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_bytes() == first
    assert b"<dc:date>" not in first
    assert first.count(b'<g id="axes_') == 6
    with pytest.raises(OutputError, match=r"\.svg, \.png or \.pdf"):
        save_histograms(histograms, "reference", reference, tmp_path / "x.jpg")
    with pytest.raises(OutputError, match="cannot be written"):
        save_histograms(histograms, "reference", reference, tmp_path / "x.svg" / "x.svg")


def test_a_grid_shows_every_image_in_its_own_colours(tmp_path: Path) -> None:
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (200, 0, 200), (0, 200, 200), (90, 90, 0)]
    images = [np.full((8, 8, 3), colour, np.uint8) for colour in colours]
    rows = [(f"row {n} " + "long " * 30, images[2 * n : 2 * n + 2]) for n in range(3)]
    save_grid(rows, ("left", "right-of-it, at length"), tmp_path / "g.png", wrap=2)
    with Image.open(tmp_path / "g.png") as picture:
        drawn = np.asarray(picture.convert("RGB")).reshape(-1, 3)
        assert "Software" not in picture.info
    areas = [int((drawn == colour).all(axis=1).sum()) for colour in colours]
    assert min(areas) > 0.9 * max(areas) > 1000
