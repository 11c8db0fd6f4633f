"""What is at hand: roots good and bad, and what each benchmark lacks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.wordnet_splits.datasets.sources.trees import write_images
from wordnet_splits.base.errors import UnknownNameError
from wordnet_splits.base.parquet import write_table
from wordnet_splits.benchmark.checks import doctor as dr
from wordnet_splits.benchmark.checks.held_images import HeldImages, Readiness
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import loading, write_manifest
from wordnet_splits.benchmark.recipe import recipe_names
from wordnet_splits.datasets.sources import source_names

TEXTURES = ["banded/banded_0002", "banded/banded_0004", "zigzagged/zigzagged_0008"]

pytestmark = pytest.mark.usefixtures("no_roots_of_this_machine")


def examine(given: dict[str, Path] | None = None, manifests: Path = Path("no manifests")) -> dr.Diagnosis:
    return dr.check_sources(given, benchmarks=dr.read_benchmarks(manifests))


@pytest.fixture
def dtd(tmp_path: Path) -> Path:
    folder = tmp_path / "dtd"
    write_images(folder / "images", [f"{t}.jpg" for t in TEXTURES])
    (folder / "images" / "banded" / "holiday.jpg").write_bytes(b"")
    return folder


def states(found: dr.Diagnosis) -> dict[str, dr.SourceState]:
    return {s.name: s for s in found.sources}


def benchmarks(found: dr.Diagnosis) -> dict[str, dr.BenchmarkState]:
    return {b.name: b for b in found.benchmarks}


def test_every_source_and_benchmark_has_a_row_without_any_root():
    found = examine()
    assert [s.name for s in found.sources] == list(source_names())
    assert {s.state for s in found.sources} == {dr.BUILT_IN, dr.NO_ROOT}
    assert [b.name for b in found.benchmarks] == sorted(recipe_names())
    digits = states(found)["digits"]
    assert [(s.split, s.held, s.expected) for s in digits.splits] == [("all", 1797, 1797)]


def test_a_part_of_a_dataset_is_counted_against_the_whole(dtd):
    state = states(examine({"dtd": dtd}))["dtd"]
    assert (state.state, state.given_by, state.root) == (dr.INCOMPLETE, "--root", str(dtd))
    assert [(s.split, s.held, s.expected) for s in state.splits] == [("all", 3, 5640)]
    assert state.unexpected == {"banded/holiday.jpg": 1}
    assert state.free is not None
    assert state.free > 0
    assert state.error is None


def test_the_test_images_at_hand_are_counted_by_id(dtd):
    """`digits` is embedded; 3 of the 5,640 images of dtd are there, and ID images of CIFAR are not."""
    found = dr.check_sources({"dtd": dtd}).benchmarks
    ready = {b.name: b.ready for b in found}
    assert ready["digits"].runs_here == "yes"
    assert ready["openood-cifar10"].runs_here == "no"
    assert HeldImages("dtd", 3, 5640) in ready["openood-cifar10"].sources
    assert sum(source.held for source in ready["digits"].sources) == 2074


@pytest.mark.parametrize(
    ("roles", "held", "awaits", "said"),
    [
        (("far", "id"), 5640, (), "yes"),
        (("far", "id"), 60, (), "partly (60 of 5,640 dtd)"),
        (("id", "near"), 5640, ("lsun",), "partly (awaits lsun)"),
        (("far",), 5640, (), "no"),
        (("csid", "id"), 5640, (), "no"),
    ],
)
def test_a_benchmark_runs_with_images_of_id_and_ood(roles, held, awaits, said):
    assert Readiness((HeldImages("dtd", held, 5640),), awaits, roles).runs_here == said


def test_a_bad_root_is_told_in_its_row_and_stops_nothing_else(dtd, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    given = {"svhn": dtd, "lsun": empty, "caltech256": tmp_path / "nowhere", "food101": loop, "dtd": dtd}
    found = states(examine(given))
    assert {n for n, s in found.items() if s.state == dr.BAD_ROOT} == set(given) - {"dtd"}
    assert found["dtd"].state == dr.INCOMPLETE
    errors = {n: str(s.error["what"]) for n, s in found.items() if s.error}
    assert "looks like dtd" in errors["svhn"]
    assert "empty" in errors["lsun"]
    assert "does not exist" in errors["caltech256"]
    assert "food101" in errors["food101"]
    assert all(s.held is None for s in found["svhn"].splits)


def test_a_root_says_who_gave_it(dtd, tmp_path, monkeypatch):
    config = tmp_path / "config" / "wordnet-splits" / "roots.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'dtd = "{dtd}"\n')
    assert states(examine())["dtd"].given_by == str(config)
    monkeypatch.setenv("WORDNET_SPLITS_ROOT_DTD", str(dtd))
    assert states(examine())["dtd"].given_by == "WORDNET_SPLITS_ROOT_DTD"
    assert states(examine({"dtd": dtd}))["dtd"].given_by == "--root"


def test_a_root_of_no_known_source_is_bad_input(dtd):
    with pytest.raises(UnknownNameError) as error:
        examine({"dtdd": dtd})
    assert error.value.near == ("dtd",)


def test_a_benchmark_awaits_only_what_no_inventory_knows():
    found = benchmarks(examine())
    needs = {(a.group, a.split, a.needs) for a in found["unknown-cifar"].awaits}
    assert needs == {
        ("tin158", "train", "imagenet1k train"),
        ("tin158", "val", "imagenet1k train"),
        ("lsun", "test", "lsun train"),
    }
    assert found["digits"].awaits == []
    assert found["osc-p2"].awaits == []
    assert {a.needs for a in found["osc-p1"].awaits} == {"imagenet1k train"}
    assert "list kim2023/cifar-40" in {a.needs for a in found["unknown-cifar-paper"].awaits}
    assert not any(b.frozen or b.complete for b in found.values())


def test_pixels_are_asked_for_the_splits_a_benchmark_uses(dtd):
    found = benchmarks(examine({"dtd": dtd}))
    assert found["unknown-cifar"].pixels["dtd"] == "5,637 of 5,640"
    assert found["unknown-cifar"].pixels["svhn"] == dr.NO_ROOT
    assert found["unknown-cifar"].pixels["gaussian"] == dr.BUILT_IN


@pytest.mark.parametrize(
    ("held", "expected", "at_hand", "lacking"),
    [
        (60, 5640, "60 of 5,640", "5,580 of 5,640"),
        (None, 5640, "- of 5,640", "5,640 of 5,640"),
        (7, None, "7 of ?", "7 at hand of an unknown number"),
        (5650, 5640, "5,650 of 5,640", "10 more than the 5,640 published"),
    ],
)
def test_what_is_at_hand_and_what_is_lacking_are_told_apart(held, expected, at_hand, lacking):
    """A source of one split calls it ``all``, which must not be read as all images."""
    for split, name in (("all", ""), ("val", "val ")):
        state = dr.SplitState(split, held, expected)
        assert dr.held_text(state) == name + at_hand
        assert dr.lacking_text(state) == name + lacking


def test_a_complete_copy_makes_an_awaiting_group_ready(monkeypatch):
    source_state = dr.source_state

    def with_imagenet_train(name, *rest):
        state = source_state(name, *rest)
        if name != "imagenet1k":
            return state
        splits = [dataclasses.replace(s, held=s.expected) for s in state.splits if s.split == "train"]
        val = next(s for s in state.splits if s.split == "val")
        splits.append(dataclasses.replace(val, held=7, difference="7 held"))
        return dataclasses.replace(state, state=dr.INCOMPLETE, order="published", splits=splits)

    monkeypatch.setattr(dr, "source_state", with_imagenet_train)
    found = benchmarks(examine())
    assert found["osc-p1"].awaits
    assert all(a.ready for a in found["osc-p1"].awaits)
    # the lists of osc-p2 hold training images, and validation images for its test
    assert found["osc-p2"].pixels["imagenet1k"] == "val 49,993 of 50,000"
    ready = {a.needs: a.ready for a in found["unknown-cifar"].awaits}
    assert ready == {"imagenet1k train": True, "lsun train": False}


def test_frozen_benchmarks_await_what_their_manifest_awaits(tmp_path):
    write_manifest(build_benchmark("digits").manifest, tmp_path)
    found = benchmarks(examine(manifests=tmp_path))
    assert (found["digits"].frozen, found["digits"].complete) == (True, True)
    assert not found["unknown-cifar"].frozen


def test_a_damaged_manifest_is_told_in_its_row(tmp_path):
    folder = write_manifest(build_benchmark("digits").manifest, tmp_path)
    (folder / "manifest.json").write_text("{")
    found = benchmarks(examine(manifests=tmp_path))
    assert found["digits"].error is not None
    assert not found["digits"].complete
    assert found["osc-p1"].error is None


def test_a_changed_class_table_or_an_absent_image_table_is_told_in_its_row(tmp_path):
    folder = write_manifest(build_benchmark("digits").manifest, tmp_path)
    other = write_manifest(build_benchmark("digits").manifest, tmp_path / "other")
    table = pq.read_table(folder / "classes.parquet")
    labels = pa.array([label + 1 for label in table["label"].to_pylist()], table.schema.field("label").type)
    changed = table.set_column(table.schema.get_field_index("label"), table.schema.field("label"), labels)
    write_table(changed, folder / "classes.parquet")
    said = benchmarks(examine(manifests=tmp_path))["digits"].error
    assert said is not None
    assert "class table is not the one" in str(said["what"])
    next(other.glob("images/*/*.parquet")).unlink()
    said = benchmarks(examine(manifests=tmp_path / "other"))["digits"].error
    assert said is not None
    assert "No such file" in str(said["what"])


def test_what_is_frozen_is_not_fingerprinted_anew(tmp_path, monkeypatch):
    write_manifest(build_benchmark("digits").manifest, tmp_path)
    monkeypatch.setattr(loading, "part_fingerprints", lambda *_: pytest.fail("the image tables are read"))
    assert benchmarks(examine(manifests=tmp_path))["digits"].complete


def test_real_datasets_are_counted(real_data):
    given = {"cifar100": real_data / "cifar-100-python", "tiny-imagenet": real_data / "tiny-imagenet-200"}
    found = examine(given)
    assert states(found)["cifar100"].state == dr.COMPLETE
    tiny = {s.split: (s.held, s.difference is None) for s in states(found)["tiny-imagenet"].splits}
    assert tiny == {"train": (0, False), "val": (10_000, True)}
    tinyval = benchmarks(found)["unknown-cifar-tinyval"]
    assert tinyval.pixels["tiny-imagenet"] == tinyval.pixels["cifar100"] == dr.COMPLETE
