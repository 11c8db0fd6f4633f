"""What differs between two versions is said in words: renames by digest, classes, images."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import pyarrow as pa

from tests.made_manifests import altered, made_manifest
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.diff import describe_diff
from wordnet_splits.benchmark.manifest.tables import IMAGE_SCHEMA, class_table

Picture = tuple[str, int]
"""(class, number): pictures of one number have the same bytes."""


def manifest(
    pictures: Iterable[Picture],
    *,
    evidence: str = "by name",
    digests: bool = True,
    left_out: Iterable[str] = (),
) -> Manifest:
    """Return a manifest of one near group, whose pictures lie in class folders, and of classes left out."""
    pictures = list(pictures)
    rows = [
        {
            "source": "pics",
            "image_id": f"{name}/{number}",
            "class_id": name,
            "role": "near",
            "group": "near",
            "split": "test",
            "label": -1,
            "view": "raw",
            "digest": hashlib.sha256(b"%d" % number).digest() if digests else None,
        }
        for name, number in pictures
    ]
    images = pa.Table.from_pylist(rows, schema=IMAGE_SCHEMA)
    classes = [
        {
            "wnids": None,
            "via": (),
            "source": "pics",
            "class_id": name,
            "name": name,
            "role": "near",
            "group": "near",
            "label": -1,
            "rule": "",
            "evidence": f"{name} is near {evidence}",
            **dict.fromkeys(("own_wnid", "nearest_wnid", "nearest_id", "lcs", "distance")),
            **dict.fromkeys(("path", "wup", "lch", "mean")),
        }
        for name in sorted({name for name, _ in pictures})
    ]
    classes += [
        {**classes[0], "class_id": name, "name": name, "role": "excluded", "group": ""} for name in left_out
    ]
    made = made_manifest(
        [{"group": "near", "role": "near", "split": "test"}],
        {("test", "near"): lambda: images},
        classes=class_table(classes),
    )
    prints = made.data.as_dict()["fingerprints"]
    explanation = hashlib.sha256(evidence.encode()).hexdigest()
    return altered(made, fingerprints={**prints, "explanation": explanation})


def words(a: Manifest, b: Manifest) -> list[str]:
    return list(describe_diff(a, b).words)


def pictures(name: str, numbers: range) -> list[Picture]:
    return [(name, number) for number in numbers]


def test_a_renamed_class_is_known_by_the_digests_of_its_pictures() -> None:
    a = manifest([*pictures("mug", range(50)), *pictures("pen", range(90, 92))])
    b = manifest([*pictures("cup", range(50)), *pictures("pen", range(90, 92))])
    assert words(a, b) == ["class mug renamed cup, 50 images"]
    (rename,) = describe_diff(a, b).as_dict()["renames"]
    assert (rename["before"], rename["after"], rename["pictures"]) == ("mug", "cup", 50)
    c = manifest([*pictures("cup", range(3, 55)), *pictures("pen", range(90, 92))])
    assert words(a, c) == ["class mug renamed cup, 47 images, 3 more removed, 5 more added"]
    assert words(a, a) == []


def test_a_class_that_is_left_out_has_no_number_of_pictures() -> None:
    a, b = (manifest(pictures("pen", range(2)), left_out=[name]) for name in ("sofa", "couch"))
    assert words(a, b) == [
        "class sofa removed from the classes left out",
        "class couch added to the classes left out",
    ]


def test_classes_that_are_merged_or_have_no_digests_are_not_renamed() -> None:
    a = manifest([*pictures("mug", range(10)), *pictures("glass", range(10, 20))])
    b = manifest(pictures("cup", range(20)))
    assert words(a, b) == [
        "class glass removed from near, 10 images",
        "class mug removed from near, 10 images",
        "class cup added to near, 20 images",
        "10 images of class glass now of class cup",
        "10 images of class mug now of class cup",
    ]
    unknown = [manifest(pictures(name, range(9)), digests=False) for name in ("mug", "cup")]
    assert words(*unknown) == [
        "class mug removed from near, 9 images",
        "class cup added to near, 9 images",
    ]


def test_pictures_that_come_and_go_are_counted_by_class() -> None:
    a = manifest([*pictures("mug", range(4)), *pictures("pen", range(90, 92))])
    b = manifest([*pictures("mug", range(1, 9)), ("pen", 91), ("mug", 90)])
    assert words(a, b) == [
        "1 image removed from class mug (test)",
        "5 images added to class mug (test)",
        "1 image of class pen now of class mug",
    ]
