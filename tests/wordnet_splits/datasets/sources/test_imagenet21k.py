"""ImageNet-21K and SSB-hard: which release a root is, and what is refused of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.datasets.sources.trees import (
    Rows,
    hash_of,
    in_class_folders,
    jpeg,
    shuffled,
    train_tar,
    write_images,
)
from wordnet_splits.base.errors import MissingImageError, SourceError
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources import Source, open_source

IN_BOTH = ("n00470682", "n00474568")
FALL_ONLY = "n09770359"  # adjutant general
NEITHER_KNOWN = "n00004475"  # organism
OF_IMAGENET_1K = "n01440764"


def images(*wnids: str, split: str = "fall11") -> Rows:
    return {(f"{wnid}_{number}", wnid, split) for wnid in wnids for number in (2, 10026)}


def folders(root: Path, *wnids: str, top: str = "") -> Path:
    write_images(root, in_class_folders(images(*wnids), top))
    return root


def rows(source: Source, *splits: str) -> Rows:
    return {tuple(row.values()) for batch in source.scan(splits or None) for row in batch.to_pylist()}


@pytest.mark.parametrize("top", ["", "imagenet21k", "images_largescale/ssb_hard", "winter21_whole"])
def test_hard_classes_are_read_from_folders_of_either_name(top: str, tmp_path: Path) -> None:
    source = open_source("ssb-hard", folders(tmp_path, *IN_BOTH, top=top))
    assert rows(source) == images(*IN_BOTH)
    ids = shuffled(row[0] for row in images(*IN_BOTH))
    assert len(set(source.read(ids))) == len(ids)


def test_hard_classes_are_read_from_a_root_of_all_classes(tmp_path: Path) -> None:
    folders(tmp_path, *IN_BOTH, NEITHER_KNOWN, OF_IMAGENET_1K)
    assert rows(open_source("ssb-hard", tmp_path)) == images(*IN_BOTH)
    source = open_source("imagenet21k", tmp_path)
    assert rows(source) == images(*IN_BOTH, NEITHER_KNOWN, OF_IMAGENET_1K)
    assert source.unexpected == {}


def test_a_root_too_small_to_tell_is_either_release(tmp_path: Path) -> None:
    source = open_source("ssb-hard", folders(tmp_path, *IN_BOTH))
    for split in ("fall11", "winter21"):
        assert rows(source, split) == images(*IN_BOTH, split=split)


@pytest.mark.parametrize("name", ["ssb-hard", "imagenet21k"])
def test_fall_2011_is_known_by_a_class_and_is_not_winter_2021(name: str, tmp_path: Path) -> None:
    source = open_source(name, folders(tmp_path, *IN_BOTH, FALL_ONLY))
    assert rows(source) == rows(source, "fall11") == images(*IN_BOTH, FALL_ONLY)
    with raises(SourceError, where=tmp_path, naming=("fall11", "winter21")) as caught:
        rows(source, "winter21")
    assert str(tmp_path) in str(caught.value)


def test_winter_2021_is_known_by_most_of_its_classes_and_is_not_fall_2011(tmp_path: Path) -> None:
    both = [c.class_id for c in load_catalog("ssb-hard") if c.superclass == "fall11 winter21"]
    assert len(both) == 980
    for wnid in both[: len(both) // 2 + 1]:
        (tmp_path / wnid).mkdir()
    folders(tmp_path, *both[:2])
    source = open_source("ssb-hard", tmp_path)
    assert rows(source, "winter21") == images(*both[:2], split="winter21") == rows(source)
    with raises(SourceError, where=tmp_path, naming=("winter21", "fall11")):
        rows(source, "fall11")
    with raises(MissingImageError, where=tmp_path, naming=("fall11", "winter21")):
        source.read([f"{FALL_ONLY}_2"])


@pytest.mark.parametrize("release", ["fall11", "winter21"])
def test_the_archives_name_their_release(release: str, tmp_path: Path) -> None:
    held = images(*IN_BOTH, split=release)
    (tmp_path / f"{release}_whole.tar").write_bytes(train_tar(held))
    source = open_source("imagenet21k", tmp_path)
    assert (source.layout, rows(source)) == ("tars", held)
    ids = shuffled(row[0] for row in held)
    assert source.read(ids) == [jpeg(hash_of(i)) for i in ids]
    (other,) = {"fall11", "winter21"} - {release}
    with raises(SourceError, where=tmp_path, naming=(release, other)):
        rows(source, other)


def test_imagenet_1k_is_not_taken_for_imagenet_21k(tmp_path: Path) -> None:
    folders(tmp_path, OF_IMAGENET_1K)
    with raises(SourceError, where=tmp_path):
        open_source("imagenet21k", tmp_path)
