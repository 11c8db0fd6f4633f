"""Columns as labels: found by name, given, restricted, without the background; differences are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loaders.harness.data.arrays import Arrays
from loaders.harness.models.class_map import ClassMap, Label, LabelSpace, class_map, columns_key
from tests.raising import raises
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog

SPACE = LabelSpace(
    (
        Label("n01440764", "tench", ("n01440764",)),
        Label("n02012849", "crane", ("n02012849",)),
        Label("n02814860", "beacon", ("n02814860",)),
    ),
    {"imagenet1k": ("n01440764", "n01443537", "n02012849", "n02814860", "n03126707")},
)
LOGITS = np.array([[0, 9, 1, 2, 3], [5, 4, 3, 2, 1], [0, 1, 2, 8, 9]], dtype=np.float32)


def test_labels_are_read_from_the_class_table() -> None:
    space = LabelSpace.of(load_manifest("digits").classes)
    assert [label.name for label in space.labels] == ["zero", "one", "two", "three", "four", "five"]
    assert space.sources["digits"] == tuple("0123456789")
    imagenet = LabelSpace.of(load_manifest("osc-p2").classes)
    assert len(imagenet.sources["imagenet1k"]) == 1000
    known = class_map(imagenet, 1000, mapping="imagenet1k")
    assert len(known.columns) == 30
    wnids = imagenet.sources["imagenet1k"]
    assert [wnids[c] for c in known.columns] == [label.class_id for label in imagenet.labels]


@pytest.mark.parametrize(
    ("options", "columns", "how"),
    [
        ({"mapping": "imagenet1k"}, (0, 2, 3), "source:imagenet1k"),
        ({"mapping": [4, 0, 1]}, (4, 0, 1), "given"),
        ({"mapping": {"n02012849": 1, "n01440764": 2, "n02814860": 0}}, (2, 1, 0), "given"),
        ({"mapping": ["n02814860", "n01440764", "x", "n02012849", "y"]}, (1, 3, 0), "given"),
        (
            {"classes": ["Beacon, lighthouse", "goldfish", "tench, Tinca tinca", "CRANE", "x"]},
            (2, 3, 0),
            "classes",
        ),
        ({"classes": list(SPACE.sources["imagenet1k"])}, (0, 2, 3), "classes"),
        ({"classes": ["none", "tench", "crane", "x", "beacon"], "background": 0}, (1, 2, 4), "classes"),
        ({"classes": ["tench", "crane", "x", "beacon"], "background": 0}, (1, 2, 4), "classes"),
    ],
)
def test_columns_are_found(options: dict[str, Any], columns: tuple[int, ...], how: str) -> None:
    found = class_map(SPACE, 5, **options)
    assert (found.columns, found.origin) == (columns, how)


@pytest.mark.parametrize("label", [Label("n01443537", "tench"), Label("fish", "tench", ("n01443537",))])
def test_imagenet_columns_match_wnids_of_other_sources(label: Label) -> None:
    """Columns of ImageNet-1K are its sorted wnids; a label of another source is matched by wnid alone."""
    wnids = [entry.class_id for entry in load_catalog("imagenet1k")]
    assert wnids == sorted(wnids)
    found = class_map(LabelSpace((label,), {"mine": ()}), 1000, mapping="imagenet1k")
    assert (found.columns, found.origin) == ((wnids.index("n01443537"),), "source:imagenet1k")


def test_imagenet_columns_match_no_names() -> None:
    space = LabelSpace((Label("tench", "tench"), Label("n01443537", "goldfish")), {"mine": ()})
    for source, error in (("imagenet1k", DataError), ("cifar100", UnknownNameError)):
        with raises(error):
            class_map(space, 1000, mapping=source)


@pytest.mark.parametrize(("width", "background", "columns"), [(3, None, (0, 1, 2)), (4, 0, (1, 2, 3))])
def test_identity_is_of_equal_width(width: int, background: int | None, columns: tuple[int, ...]) -> None:
    found = class_map(SPACE, width, mapping="identity", background=background)
    assert (found.columns, found.origin) == (columns, "identity")
    with pytest.raises(DataError) as refused:
        class_map(SPACE, width + 1, mapping="identity", background=background)
    assert "identity" not in str(refused.value)  # which would be wrong classes without a word


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({}, DataError, ("5", "3")),
        ({"mapping": "identity"}, DataError, ("5", "3")),
        ({"mapping": "identity", "background": 0}, DataError, ("4", "3")),
        (
            {"classes": ["tench", "a", "b", "c", "d"]},
            DataError,
            ("2", "3", "n02012849"),
        ),
        (
            {"classes": ["tench", "crane", "crane", "beacon", "d"]},
            DataError,
            "n02012849",
        ),
        ({"mapping": [0, 1]}, DataError, ("2", "3")),
        ({"mapping": [0, 1, 5]}, DataError, "5"),
        ({"mapping": [0, 1, 1]}, DataError, ("n02012849", "n02814860")),
        ({"mapping": [0, 1, 4], "background": "last"}, DataError, "4"),
        ({"mapping": {"n01440764": 0}}, DataError, ("2", "3")),
        ({"mapping": ["a", "b"]}, DataError, ("2", "5")),
        ({"mapping": "imagenet"}, UnknownNameError, "imagenet1k"),
        ({"mapping": "identity", "restrict": "rows"}, UnknownNameError, ()),
        ({"mapping": "identity", "background": 7}, DataError, ("background", "7")),
        ({"mapping": "identity", "background": "first"}, DataError, "last"),
    ],
)
def test_a_mismatch_is_refused_with_the_difference(
    options: dict[str, Any], error: type[SplitsError], named: object
) -> None:
    with raises(error, naming=named):
        class_map(SPACE, 5, **options)


@pytest.mark.parametrize("background", [1.5, True, float("nan"), float("inf"), [], "Last", "1.0", ""])
def test_a_background_that_is_no_column_is_refused(background: Any) -> None:
    with pytest.raises(DataError) as refused:
        class_map(SPACE, 4, background=background, where="net")
    assert refused.value.where == "net"


def test_columns_restrict_softmax_and_full_does_not() -> None:
    columns = class_map(SPACE, 5, mapping=[3, 0, 2])
    logits = LOGITS[:, list(columns.class_columns)]
    predicted = columns.predictions(logits)
    np.testing.assert_array_equal(logits, LOGITS[:, [3, 0, 2]])
    np.testing.assert_array_equal(predicted, [0, 1, 0])
    full = class_map(SPACE, 5, mapping=[3, 0, 2], restrict="full")
    logits = LOGITS[:, list(full.class_columns)]
    predicted = full.predictions(logits)
    np.testing.assert_array_equal(logits, LOGITS)
    np.testing.assert_array_equal(predicted, [-1, 1, -1])
    np.testing.assert_array_equal(columns.positions([2, -1, 0]), [2, -1, 0])
    np.testing.assert_array_equal(full.positions([2, -1, 0]), [2, -1, 3])
    assert full.record() == {
        "restrict": "full",
        "columns": 5,
        "of": 5,
        "background": None,
        "mapping": "given",
        "order": columns_key([3, 0, 2]),
    }
    assert full.identity
    assert not columns.identity


@pytest.mark.parametrize("restrict", ["columns", "full"])
def test_the_background_is_dropped_after_softmax(restrict: str) -> None:
    """Palechor: p over all columns, the background among them; then its column goes."""
    found = class_map(SPACE, 5, mapping=[3, 0, 2], restrict=restrict, background=1)
    data = found.arrays(Arrays.of(features=np.zeros((3, 7)), logits=LOGITS), labels=[0, 1, -1])
    assert data["features"].shape == (3, 7)
    kept = [3, 0, 2] if restrict == "columns" else [0, 2, 3, 4]
    np.testing.assert_array_equal(data["logits"][:], LOGITS[:, kept])
    np.testing.assert_array_equal(data["background"][:], LOGITS[:, 1])
    np.testing.assert_array_equal(data["labels"][:], [kept.index(3), kept.index(0), -1])
    assert 1 not in found.class_columns
    assert found.softmax_columns == (*kept, 1)


def test_the_names_of_a_dataset_find_two_classes_of_one_name() -> None:
    """`Manifest.class_names` tells ImageNet's bird *crane* from the machine by the class id."""
    space = LabelSpace((Label("n02012849", "crane", ()), Label("n03126707", "crane", ())), {"imagenet1k": ()})
    found = class_map(space, 2, classes=["crane (n03126707)", "crane (n02012849)"])
    assert found.columns == (1, 0)


def test_a_benchmark_without_labels_sees_every_column() -> None:
    space = LabelSpace((), {"imagenet1k": ()})
    found = class_map(space, 5)
    assert found.class_columns == (0, 1, 2, 3, 4)
    np.testing.assert_array_equal(found.predictions(LOGITS), [-1, -1, -1])
    np.testing.assert_array_equal(found.positions([-1, -1]), [-1, -1])


def test_logits_of_another_width_are_refused() -> None:
    with raises(DataError, naming=("5", "6")):
        ClassMap((0, 1), 6).arrays(Arrays.of(logits=LOGITS))
