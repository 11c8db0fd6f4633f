"""The class or subtree of each image: equal codes for equal clusters, and what cannot be clustered."""

from __future__ import annotations

import pyarrow as pa
import pytest

from loaders.harness.results.clusters import image_clusters
from loaders.harness.results.metadata import ClusterCount, check_level
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.benchmark.resolve import load_manifest


def images(*rows: tuple[str, str, str]) -> pa.Table:
    """Rows of group, source and class_id."""
    columns = ("group", "source", "class_id", "role")
    with_roles = [(*row, "id" if row[0] == "cifar-40" else "near") for row in rows]
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in with_roles])


def of(group: str, source: str, count: int) -> list[tuple[str, str, str]]:
    """Two images of each of the first classes of a group of unknown-cifar-tinyval, interleaved."""
    classes = load_manifest("unknown-cifar-tinyval").classes.to_pylist()
    ids = [row["class_id"] for row in classes if row["group"] == group][:count]
    return [(group, source, class_id) for class_id in ids * 2]


def test_images_of_a_class_share_a_code_and_sets_of_one_class_are_named() -> None:
    rows = of("cifar-60", "cifar100", 9) + of("cifar-40", "cifar100", 5) + of("gaussian", "gaussian", 1)
    found = image_clusters(images(*rows, of("dtd", "dtd", 1)[0]), None)
    codes = found.codes.tolist()
    assert (codes[:9], codes[18:23]) == (codes[9:18], codes[23:28])
    assert (len({*codes[:9]}), len({*codes[18:23]})) == (9, 5)
    assert found.sets["cifar-60"] == ClusterCount(9, 9.0)
    problems = {group for group, why in found.sets.items() if isinstance(why, str)}
    assert problems == {"gaussian", "dtd"}  # a single class; of 47, the images of a single class
    assert len([*found.notes(["cifar-60", "dtd"])]) == 1


def test_subtrees_join_classes_and_need_synsets() -> None:
    manifest = load_manifest("unknown-cifar-tinyval")
    table = images(*of("cifar-60", "cifar100", 60), *of("dtd", "dtd", 47))
    by_cut = [image_clusters(table, manifest, cut=cut).sets["cifar-60"].number for cut in (1, 2, 20)]
    assert by_cut[0] < by_cut[1] < by_cut[2] == 60
    found = image_clusters(table, manifest)
    assert 5 < found.sets["cifar-60"].number < 60
    assert isinstance(found.sets["dtd"], str)
    assert not found.codes[120:].any()


@pytest.mark.parametrize("row", [("cifar-60", "cifar100", "nowhere"), ("mine", "mine", "a")])
def test_other_classes_and_sets_are_refused(row: tuple[str, str, str]) -> None:
    with raises(DataError, naming=row[0]):
        image_clusters(images(row), load_manifest("unknown-cifar-tinyval"))


def test_levels_and_cuts() -> None:
    assert [check_level("classes"), check_level("subtrees", 3)] == ["classes", "subtrees"]
    with raises(UnknownNameError, where="--over", near="classes"):
        check_level("class")
    for over, cut in (("classes", 2), ("subtrees", 0)):
        with raises(DataError, where="--cut"):
            check_level(over, cut)
