"""Look-alike pictures between the sets of a benchmark, on pictures made here and on CIFAR-100."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from PIL import Image

from tests.made_manifests import made_manifest
from tests.raising import raises
from wordnet_splits.base.errors import SourceError, SplitsError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.tables import image_table
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.duplicates import near_duplicates as nd

from .test_perceptual_hash import picture

GROUPS = (("known", "id"), ("other", "external"), ("far-a", "far"), ("far-b", "far"))
TEXTURES = ("banded", "blotchy", "braided", "bubbly")
SPLITS = ("train", "test")


@cache
def ids_of(texture: str) -> list[str]:
    inventory = load_inventory("dtd", "all")
    assert inventory is not None
    return [i for i in inventory["image_id"].to_pylist() if i.startswith(f"{texture}/")]


def image_id(group: int, split: str, number: int) -> str:
    return ids_of(TEXTURES[group])[3 * SPLITS.index(split) + number]


@pytest.fixture
def manifest() -> Manifest:
    """Four groups of DTD's textures, train and test, three pictures each; one more awaits its source."""
    parts = {}
    rows = []
    for n, (group, role) in enumerate(GROUPS):
        for split in SPLITS:
            table = image_table(
                source="dtd",
                role=role,
                group=group,
                split=split,
                view="raw",
                labels={TEXTURES[n]: -1},
                images={TEXTURES[n]: [image_id(n, split, k) for k in range(3)]},
            )
            parts[split, group] = lambda table=table: table
            rows.append({"group": group, "role": role, "source": "dtd", "split": split, "status": "complete"})
    rows.append(
        {"group": "lsun", "role": "far", "source": "lsun", "split": "test", "status": "awaiting lsun"}
    )
    return made_manifest(rows, parts)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Every picture is another, but for four copies: scaled, recompressed, brightened, and as it is."""
    folder = tmp_path / "dtd" / "images"
    for n in range(len(GROUPS)):
        for split in SPLITS:
            for k in range(3):
                write(folder, image_id(n, split, k), picture(100 * n + 10 * SPLITS.index(split) + k))
    write(folder, image_id(2, "test", 1), picture(0).resize((70, 60)))  # of known train
    write(folder, image_id(0, "test", 2), picture(1), quality=30)  # of known train: within one group
    write(folder, image_id(3, "train", 0), picture(100).point(lambda v: v * 0.7 + 30))  # of other train
    write(folder, image_id(3, "test", 2), picture(200))  # of far-a train: two test sets
    return folder.parent


def write(folder: Path, name: str, image: Image.Image, quality: int = 90) -> None:
    path = folder / f"{name}.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, quality=quality)


EXPECTED = [
    (("known", image_id(0, "test", 2)), ("known", image_id(0, "train", 1)), True),
    (("known", image_id(0, "train", 0)), ("far-a", image_id(2, "test", 1)), True),
    (("other", image_id(1, "train", 0)), ("far-b", image_id(3, "train", 0)), True),
    (("far-a", image_id(2, "train", 0)), ("far-b", image_id(3, "test", 2)), False),
]


def found(report: nd.NearReport) -> list[tuple[tuple[str, str], tuple[str, str], bool]]:
    return [((p.group_a, p.image_a), (p.group_b, p.image_b), p.guarded) for p in report.pairs]


def test_copies_are_found_between_groups_and_splits_guarded_ones_first(manifest, root):
    report = nd.find_near_duplicates(manifest, {"dtd": root})
    assert found(report) == EXPECTED
    assert report.pairs[3].distance == 0
    assert [(p.class_a, p.class_b) for p in report.pairs[1:2]] == [("banded", "braided")]
    assert report.problems == []
    by_set = {(c.group, c.split): c for c in report.compared}
    assert by_set["known", "train"].compared == by_set["known", "train"].images == 3
    assert (by_set["lsun", "test"].images, by_set["lsun", "test"].why) == (None, "awaiting lsun")


def test_a_smaller_threshold_finds_fewer(manifest, root):
    assert found(nd.find_near_duplicates(manifest, {"dtd": root}, threshold=0))[-1] == EXPECTED[3]
    assert len(nd.find_near_duplicates(manifest, {"dtd": root}, threshold=0).pairs) < len(EXPECTED)


def test_workers_change_nothing(manifest, root, monkeypatch):
    monkeypatch.setattr(nd, "IMAGES_PER_JOB", 7)
    monkeypatch.setattr(nd, "ROWS_PER_JOB", 2)
    alone = nd.find_near_duplicates(manifest, {"dtd": root}, workers=1)
    together = nd.find_near_duplicates(manifest, {"dtd": root}, workers=2)
    assert found(alone) == EXPECTED
    assert alone.as_dict() == together.as_dict()


def test_what_cannot_be_read_is_named_and_left_out(manifest, root):
    (root / "images" / f"{image_id(0, 'train', 0)}.jpg").unlink()
    broken = root / "images" / f"{image_id(1, 'train', 0)}.jpg"
    broken.write_bytes(broken.read_bytes()[:300])
    report = nd.find_near_duplicates(manifest, {"dtd": root})
    assert found(report) == [EXPECTED[0], EXPECTED[3]]
    assert [(p.kind, p.image_id) for p in report.problems] == [
        ("missing", image_id(0, "train", 0)),
        ("unreadable", image_id(1, "train", 0)),
    ]
    short = {(c.group, c.split): (c.compared, c.why) for c in report.compared if c.why and c.images}
    assert short == {
        ("known", "train"): (2, "1 missing or unreadable"),
        ("other", "train"): (2, "1 missing or unreadable"),
    }


def test_without_a_root_a_set_is_passed_over_and_named(manifest):
    report = nd.find_near_duplicates(manifest, {})
    assert report.pairs == []
    assert {c.why for c in report.compared if c.source == "dtd"} == {"no root of dtd"}


def test_a_bad_root_is_an_error(manifest, tmp_path):
    with raises(SourceError, where="nowhere"):
        nd.find_near_duplicates(manifest, {"dtd": tmp_path / "nowhere"})


@pytest.mark.parametrize("threshold", [-1, nd.MAX_THRESHOLD + 1])
def test_a_threshold_out_of_range_is_refused(manifest, threshold):
    with raises(SplitsError, naming="40"):
        nd.find_near_duplicates(manifest, {}, threshold=threshold)


def test_too_many_pairs_are_refused_with_the_way_out(manifest, root, monkeypatch):
    monkeypatch.setattr(nd, "MAX_PAIRS", len(EXPECTED) - 1)
    with raises(SplitsError, naming="--threshold"):
        nd.find_near_duplicates(manifest, {"dtd": root})


def test_one_image_in_two_groups_is_no_pair_with_itself(manifest, root):
    shared = manifest.parts["train", "known"]()
    manifest.parts["train", "far-a"] = lambda: shared  # as a group that reuses classes has it
    pairs = found(nd.find_near_duplicates(manifest, {"dtd": root}))
    assert all(a != b for (_, a), (_, b), _ in pairs)
    assert (("known", image_id(0, "test", 2)), ("far-a", image_id(0, "train", 1)), True) in pairs


def test_generated_and_embedded_pictures_need_no_root():
    report = nd.find_near_duplicates(build_benchmark("digits").manifest, {}, threshold=8)
    assert all(c.compared == c.images for c in report.compared)
    assert report.problems == []
    assert all(p.source_a == p.source_b == "digits" for p in report.pairs)  # noise is like nothing
    assert report.pairs


@pytest.mark.oracle
def test_cifar_100_shows_its_known_doubles(real_data):
    root = real_data / "cifar-100-python"
    if not (root / "train").is_file():
        pytest.skip("CIFAR-100 is not among the real datasets")
    manifest = build_benchmark("unknown-cifar").manifest
    del manifest.parts["test", "gaussian"]  # ten thousand pictures of noise that take half the time
    report = nd.find_near_duplicates(manifest, {"cifar100": root})
    between = {(p.image_a, p.image_b): p for p in report.pairs if p.group_a != p.group_b}
    exact = [leak for leak in manifest.data.leaks if leak.kind == "digest" and leak.a != leak.b]
    assert sum(leak.count for leak in exact) > 0
    for leak in exact:
        assert leak.count == len(leak.examples)
        for a, b in leak.examples:
            assert between[a, b].distance == 0
    # one photograph of a worm snake, once a snake to train on and once a worm to be told from it
    assert between["train/snake/worm_snake_s_000135", "test/worm/worm_s_000665"].distance <= 8
    assert sum(c.compared for c in report.compared) == 18_000 + 2_000 + 4_000 + 6_000
