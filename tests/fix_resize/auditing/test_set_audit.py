"""The parts of an audit: matched names, sampled and measured images, pairs, histograms and grids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fix_resize.auditing.measurements import measure, sample_ids, total_variation
from fix_resize.auditing.report_files import save_grid, write_report
from fix_resize.auditing.set_audit import audit_images, fix_at, match_names
from fix_resize.decode import decode
from fix_resize.pipeline.building import PipelineSettings, build
from fix_resize.pipeline.selection import select_folder
from fix_resize.resize import apply
from fix_resize.spec import get_spec
from tests.fix_resize.made_images import photo, save
from wordnet_splits.base.errors import DataError, OutputError, SourceError
from wordnet_splits.benchmark.image_sets import open_images
from wordnet_splits.datasets.sources.image_set import ImageSet


@dataclass(frozen=True)
class Made:
    """Reads images that a function makes, by their number."""

    make: Callable[[int], np.ndarray]

    def image(self, key: str) -> Image.Image:
        return Image.fromarray(self.make(int(key)))


def stored(*names: str, make: Callable[[int], np.ndarray] = lambda row: photo(row, 8, 8)) -> ImageSet:
    rows = [("made", "all", "", name, str(n)) for n, name in enumerate(names)]
    return ImageSet.from_rows("set", rows, Made(make), None)


@pytest.mark.parametrize(
    ("names", "originals", "matches"),
    [
        (
            ["out/a/1", "out/a/2", "out/b/1"],
            ["raw/a/1", "raw/b/1", "raw/c/9"],
            {"out/a/1": "raw/a/1", "out/b/1": "raw/b/1"},
        ),
        (["a/1", "b/1"], ["a/1", "b/1", "c/1"], {"a/1": "a/1", "b/1": "b/1"}),
        # one deep match by chance does not keep the other images from their originals
        (["x/1", "x/2", "x/3"], ["x/1", "y/2", "z/3"], {"x/1": "x/1", "x/2": "y/2", "x/3": "z/3"}),
        (["p/1", "q/1", "p/2"], ["r/1", "r/2"], {"p/2": "r/2"}),
        (["p/1", "q/1"], ["r/1"], None),
    ],
)
def test_names_match_up_to_the_folders_above(
    names: list[str], originals: list[str], matches: dict[str, str] | None
) -> None:
    if matches is None:
        with pytest.raises(SourceError):
            match_names(names, stored(*originals))
    else:
        assert match_names(names, stored(*originals)) == matches


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
        with pytest.raises(DataError):
            fix_at(size)


def test_measuring_in_blocks_is_measuring_one_by_one() -> None:
    names = [f"{i:04}" for i in range(1100)]
    pixels = np.random.default_rng(60).integers(0, 256, (1100, 5, 6, 3), dtype=np.uint8)
    found = measure(stored(*names[::-1], make=lambda row: pixels[1099 - row]))
    assert (found.ids, found.size, found.skipped) == (tuple(names), (5, 6), ())
    np.testing.assert_array_equal(found.scores.variation, total_variation(pixels))


def test_images_too_small_to_measure_are_left_out() -> None:
    sizes = [(1, 8), (8, 8), (8, 8)]
    found = measure(stored("a", "b", "c", make=lambda row: photo(row, *sizes[row])))
    assert found.ids == ("b", "c")
    assert [(entry.image_id, entry.reason) for entry in found.skipped] == [("a", "data")]


def test_only_images_that_have_an_original_decide(tmp_path: Path) -> None:
    fixed = {f"{n}": apply(get_spec("fix"), Image.fromarray(photo(n))) for n in range(6)}
    noise = np.random.default_rng(62).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    mine = save(tmp_path / "set", fixed | {f"other{n}": noise[n] for n in range(6)})
    originals = save(tmp_path / "originals", {f"{n}": photo(n) for n in range(6)})
    found = open_images(str(mine))
    report = audit_images(found, found, open_images(str(originals)))
    assert (report.audit.verdict, report.pairs, len(report.scores)) == ("clean", 6, 12)


@pytest.mark.parametrize("file_format", ["png", "parquet"])
def test_an_output_of_a_build_passes(file_format: str, tmp_path: Path) -> None:
    pictures = {f"{group}/{n}": photo(n, 40, 50) for n, group in enumerate("aab")}
    originals = save(tmp_path / "in", pictures)
    settings = PipelineSettings(get_spec("fix"), file_format)
    build(select_folder(originals), tmp_path / "out", settings)
    found = open_images(str(tmp_path / "out"))
    report = audit_images(found, found, open_images(str(originals)))
    assert (report.audit.verdict, report.pairs) == ("clean", 3)
    assert report.scores["difference"].to_pylist() == [0, 0, 0]


def test_the_files_of_an_audit_are_the_same_every_time(tmp_path: Path) -> None:
    folder = save(tmp_path / "$set", {f"{n}": photo(n, 32, 32) for n in range(6)})
    images = open_images(str(folder))
    written = []
    for out in (tmp_path / "a", tmp_path / "b"):
        paths = write_report(audit_images(images, images, images), images, images, out)
        written.append({path.name: path.read_bytes() for path in paths})
    assert written[0] == written[1]
    assert set(written[0]) == {"scores.parquet", "audit.json", "histogram.svg", "suspicious.png"}
    assert b"<dc:date>" not in written[0]["histogram.svg"]
    with pytest.raises(OutputError):
        write_report(audit_images(images, images), images, None, folder / "0.png")


def test_a_grid_shows_every_image_in_its_own_colours(tmp_path: Path) -> None:
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (200, 0, 200), (0, 200, 200), (90, 90, 0)]
    images = [np.full((8, 8, 3), colour, np.uint8) for colour in colours]
    rows = [(f"row {n} " + "long " * 30, images[2 * n : 2 * n + 2]) for n in range(3)]
    save_grid(rows, tmp_path / "g.png")
    with Image.open(tmp_path / "g.png") as picture:
        drawn = np.asarray(picture.convert("RGB")).reshape(-1, 3)
        assert "Software" not in picture.info
    areas = [int((drawn == colour).all(axis=1).sum()) for colour in colours]
    assert min(areas) > 0.9 * max(areas) > 1000


@pytest.mark.oracle
def test_a_set_on_disk_against_its_originals(real_data: Path, tmp_path: Path) -> None:
    """The set is written as PNG files in folders of its own, and found again by names."""
    originals = open_images(str(real_data / "food-101"))
    reference = open_images("cifar100:test", {"cifar100": real_data})
    for spec, verdict in {"fix": "clean", "opencv-bilinear": "aliased"}.items():
        (tmp_path / spec).mkdir()
        for path in (p for p in (real_data / "food-101" / "images").rglob("*") if p.is_file()):
            image = decode(path.read_bytes()).image
            Image.fromarray(apply(get_spec(spec), image)).save(tmp_path / spec / f"{path.stem}.png")
        report = audit_images(open_images(str(tmp_path / spec)), reference, originals)
        assert (report.audit.verdict, report.pairs) == (verdict, 60)
        assert report.audit.suspicious == (spec != "fix")
