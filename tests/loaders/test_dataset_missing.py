"""`UnknownDetectionSet`: which parts are meant, and what it says where images, roots or sources lack."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest

pytest.importorskip("torch", reason="the datasets need torch (extra `torch`)")

from torch import nn

from loaders import UnknownDetectionSet
from loaders.harness import evaluate
from tests.photographs import COUNT, GOLDFISH, SHARK, TENCH, image_file, jpeg, write_root
from tests.raising import mentions, raises
from wordnet_splits.base.errors import ManifestError, MissingImageError, SourceError, UnknownNameError
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.source import Source

pytestmark = pytest.mark.usefixtures("no_roots_of_this_machine")


# -- what is meant -------------------------------------------------------------------------------------------


def test_parts_are_the_groups_of_a_split_in_the_recipes_order():
    parts = UnknownDetectionSet.parts("digits")
    assert {name: len(part) for name, part in parts.items()} == {
        "digits-0-5": 360,
        "digits-6-9": 714,
        "gaussian": 500,
        "uniform": 500,
    }
    assert next(iter(parts)) == "digits-0-5"
    alone = UnknownDetectionSet("digits", group="digits-6-9")
    assert parts["digits-6-9"].table.equals(alone.table)
    assert parts["digits-6-9"][11][0].tobytes() == alone[11][0].tobytes()
    assert list(UnknownDetectionSet.parts("digits", "val")) == ["digits-0-5"]


def test_a_group_that_awaits_its_source_says_so():
    for choice in ({"group": "lsun"}, {"role": "far"}, {"group": "lsun", "allow_missing": True}):
        with raises(ManifestError, where="unknown-cifar, group lsun", naming="--root"):
            UnknownDetectionSet("unknown-cifar", **choice)
    far = UnknownDetectionSet("unknown-cifar", role="far", allow_missing=True)
    assert far.awaiting == ["lsun"]
    assert "lsun" not in UnknownDetectionSet.parts("unknown-cifar", allow_missing=True)


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ({"group": "digits-0-6"}, ("digits-0-6", "digits-0-5")),
        ({"role": "ne"}, ("ne", "role")),
        ({"split": "tst"}, ("tst", "test")),
        ({"roots": {"digit": "x"}}, "digit"),
    ],
)
def test_unknown_names_get_their_neighbours(choice, named: object):
    with raises(UnknownNameError, naming=named):
        UnknownDetectionSet("digits", **choice)
    with raises(UnknownNameError, near="digits"):
        UnknownDetectionSet("digit")


def test_a_split_without_images_says_which_there_are():
    with raises(ManifestError, where="digits-6-9", naming="val"):
        UnknownDetectionSet("digits", group="digits-6-9", split="val")
    with raises(ManifestError, where="digits-6-9"):
        UnknownDetectionSet("digits", group="digits-6-9", role="id")


def test_a_source_without_a_root_is_named():
    with raises(SourceError, where="cifar100", naming=("cifar-60", "WORDNET_SPLITS_ROOT_CIFAR100")):
        UnknownDetectionSet("unknown-cifar", group="cifar-60")


def test_all_missing_roots_are_named_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sources = sorted({row.source for row in load_manifest("openood-cifar10").groups if row.split == "test"})
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))
    for act in (
        lambda: UnknownDetectionSet("openood-cifar10"),
        lambda: evaluate(model, "openood-cifar10", "msp"),
        lambda: pack(load_manifest("openood-cifar10"), tmp_path / "packed", splits=["test"]),
    ):
        with raises(SourceError, where=", ".join(sources), naming=[f"--root {name}=DIR" for name in sources]):
            act()


def test_a_root_may_come_from_the_environment(photographs, monkeypatch):
    root, manifest = photographs
    monkeypatch.setenv("WORDNET_SPLITS_ROOT_IMAGENET1K", str(root))
    assert len(UnknownDetectionSet(manifest, role="id")) == 2 * COUNT


# -- what lacks ----------------------------------------------------------------------------------------------


@pytest.fixture
def own_root(photographs, tmp_path):
    """A copy of the root that a test may damage."""
    return Path(shutil.copytree(photographs[0], tmp_path / "imagenet"))


def test_a_missing_image_is_named_with_the_root(photographs, own_root):
    image_file(own_root, SHARK, 1).unlink()
    data = UnknownDetectionSet(photographs[1], role="near", roots={"imagenet1k": own_root})
    with raises(MissingImageError, where="imagenet", naming=(own_root, f"{SHARK}_5001", "imagenet1k")):
        list(data)


def test_allow_missing_leaves_out_and_reports_exactly_what_lacks(photographs, own_root):
    gone = {f"{SHARK}_5001", f"{TENCH}_5000", f"{TENCH}_5003"}
    for name in gone:
        class_id, number = name.split("_")
        image_file(own_root, class_id, int(number) - 5000).unlink()
    options = {"roots": {"imagenet1k": own_root}, "allow_missing": True}
    whole = UnknownDetectionSet(photographs[1], roots={"imagenet1k": photographs[0]})
    data = UnknownDetectionSet(photographs[1], **options)
    assert set(data.missing["image_id"].to_pylist()) == gone
    assert set(data.missing["reason"].to_pylist()) == {f"not under {own_root}"}
    assert len(data) == len(whole) - 3 == len(list(data))
    kept = [n for n, i in enumerate(whole.table["image_id"].to_pylist()) if i not in gone]
    assert data.table.equals(whole.table.take(kept))
    assert [image.tobytes() for image, _ in data] == [whole[n][0].tobytes() for n in kept]
    parts = UnknownDetectionSet.parts(photographs[1], **options)
    assert {name: len(part.missing) for name, part in parts.items()} == {"known": 2, "near": 1, "noise": 0}
    assert whole.missing.num_rows == 0


def test_parts_scan_a_root_once(photographs, monkeypatch):
    scans = []
    scan = Source.scan
    monkeypatch.setattr(Source, "scan", lambda self, *a: scans.append(self.name) or scan(self, *a))
    root, manifest = photographs
    UnknownDetectionSet.parts(manifest, roots={"imagenet1k": root}, allow_missing=True)
    assert scans == ["imagenet1k"]
    UnknownDetectionSet.parts(manifest, roots={"imagenet1k": root})
    assert scans == ["imagenet1k"]


def test_without_a_root_all_of_a_source_is_missing_when_allowed():
    data = UnknownDetectionSet("unknown-cifar", role="near", allow_missing=True)
    assert (len(data), len(data.missing)) == (0, 6000)
    assert pc.unique(data.missing["reason"]).to_pylist() == ["cifar100 has no root"]
    assert list(data.batches(10)) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (jpeg(0, (300, 300))[:2000], "truncated"),
        (b"", "empty"),
        (b"no image at all", ()),
        (jpeg(99, (310, 300)), ()),
    ],
    ids=["truncated", "empty", "no image", "another image"],
)
def test_a_damaged_or_other_image_is_named_with_the_root(photographs, own_root, content, message):
    image_file(own_root, GOLDFISH, 0).write_bytes(content)
    data = UnknownDetectionSet(photographs[1], role="id", roots={"imagenet1k": own_root})
    row = data.table["image_id"].to_pylist().index(f"{GOLDFISH}_5000")
    for read in (lambda: data[row], lambda: list(data.batches(1)), lambda: data.encoded(row)):
        with raises(SourceError, where="imagenet", naming=f"{GOLDFISH}_5000") as caught:
            read()
        assert str(own_root) in str(caught.value)
        assert mentions(str(caught.value), message)


def test_damage_without_a_known_digest_is_noticed_by_decoding(photographs, own_root, tmp_path):
    from wordnet_splits.benchmark.images.raw_images import RawImages
    from wordnet_splits.datasets.sources import open_source

    image_file(own_root, SHARK, 0).write_bytes(jpeg(0, (300, 300))[:2000])
    data = UnknownDetectionSet(photographs[1], role="near", roots={"imagenet1k": own_root})
    ids = data.table["image_id"].combine_chunks()
    for view in ("raw", "fix"):
        images = RawImages(open_source("imagenet1k", own_root), ids, None, view)
        with raises(SourceError, where="imagenet", naming=(f"{SHARK}_5000", own_root, "imagenet1k")):
            images.picture(ids.to_pylist().index(f"{SHARK}_5000"))


def test_a_wrong_root_is_refused(tmp_path, photographs):
    (tmp_path / "empty").mkdir()
    for root in (tmp_path / "empty", tmp_path / "nowhere"):
        for allow_missing in (False, True):
            with raises(SourceError, naming=str(root)):
                UnknownDetectionSet(photographs[1], roots={"imagenet1k": root}, allow_missing=allow_missing)


def test_another_root_of_equal_files_gives_equal_items(photographs, tmp_path):
    other = write_root(tmp_path / "other")
    first, second = (
        UnknownDetectionSet(photographs[1], roots={"imagenet1k": root}) for root in (photographs[0], other)
    )
    assert [image.tobytes() for image, _ in first] == [image.tobytes() for image, _ in second]
