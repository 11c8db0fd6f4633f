"""COCO-style JSON: images of several classes, and what a benchmark makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.datasets.sources.test_declared import rows
from wordnet_splits.base import errors
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import read_manifest
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.datasets.sources.layouts import coco
from wordnet_splits.datasets.sources.layouts.coco import json_items

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten", "no_roots_of_this_machine")

CATEGORIES = [
    {"id": 7, "name": "zebra", "supercategory": "animal"},
    {"id": 3, "name": "golden retriever", "supercategory": "animal"},
    {"id": 5, "name": "teapot", "supercategory": "kitchen"},
    {"id": 9, "name": "acoustic guitar", "supercategory": "none"},
]
# image -> (category, area) of its annotations
SHOWN = {
    "both.png": [(7, 10), (3, 30), (7, 15)],  # all of a role: 30 against 25
    "even.png": [(3, 20), (7, 20)],  # the category listed first
    "guitar.png": [(9, 1)],
    "mixed.png": [(7, 50), (5, 1)],
    "nothing.png": [],
    "pot.png": [(5, 4)],
    "pot and guitar.png": [(5, 4), (9, 2)],  # of a role and of none
    "zebra.png": [(7, 1), (7, 1)],
}
CLASSES = {
    "both": "golden retriever",
    "even": "zebra",
    "guitar": "acoustic guitar",
    "mixed": "zebra",
    "pot": "teapot",
    "pot and guitar": "teapot",
    "zebra": "zebra",
}
RECIPE = """schema = 1
name = "mine"
[[group]]
name = "known"
role = "id"
source = "boxes"
classes = { listed = ["zebra", "golden retriever"] }
images = { test = { from = "val", all = true } }
[[group]]
name = "unknown"
role = "near"
source = "boxes"
classes = { listed = ["teapot"] }
images = { test = { from = "val", all = true } }
"""


def written(path: Path, **changed: Any) -> None:
    """Write the annotations of a split, in the publisher's order of keys."""
    names = list(SHOWN)
    images = [{"id": 100 + n, "file_name": name} for n, name in enumerate(names)]
    annotations = [
        {"id": 1, "image_id": 100 + names.index(name), "category_id": category, "area": area}
        for name, held in SHOWN.items()
        for category, area in held
    ]
    held = {"info": {"year": 2017}, "images": images, "annotations": annotations, "categories": CATEGORIES}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(held | changed), "utf-8")


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    """A declared dataset of two splits, laid out as COCO is."""
    from wordnet_splits.linking.classes import declared_classes

    root = tmp_path / "boxes"
    for split in ("train", "val"):
        own.table(root / f"{split}2017", [(name,) for name in SHOWN], ("unused",))
        written(root / "annotations" / f"instances_{split}2017.json")
    (root / "annotations" / "captions_val2017.json").write_text('{"images": [], "annotations": []}')
    own.declare(root, "boxes", "coco")
    found = declared_classes("boxes", root)
    names = [c.class_id for c in found.classes]
    assert names == [category["name"] for category in CATEGORIES]
    assert [c.superclass for c in found.classes] == ["animal", "animal", "kitchen", ""]
    own.catalog(root / "boxes.tsv", names, {"train": 0, "val": 0})
    counts = {c.class_id: c.counts for c in found.classes}
    lines = (root / "boxes.tsv").read_text().splitlines()
    for n, name in enumerate(names):
        cells = lines[n + 2].split("\t")
        cells[-3:-1] = [str(counts[name]["train"]), str(counts[name]["val"])]
        lines[n + 2] = "\t".join(cells)
    (root / "boxes.tsv").write_text("\n".join(lines) + "\n")
    return root


def test_an_image_has_the_class_of_the_largest_area(boxes: Path) -> None:
    source = open_source("boxes", boxes)
    assert rows(source) == sorted((f"{s}/{i}", c, s) for s in ("train", "val") for i, c in CLASSES.items())
    assert source.extra_classes == {
        f"{split}/{image}": others
        for split in ("train", "val")
        for image, others in {
            "both": ("zebra",),
            "even": ("golden retriever",),
            "mixed": ("teapot",),
            "pot and guitar": ("acoustic guitar",),
        }.items()
    }
    assert source.unexpected == {
        f"instances_{split}2017.json: an image without a category": 1 for split in ("train", "val")
    }
    assert source.read(["val/zebra"]) == [(boxes / "val2017" / "zebra.png").read_bytes()]
    assert source.file("train/both") == boxes / "train2017" / "both.png"


def test_an_image_of_several_classes_is_taken_only_if_all_have_one_role(boxes: Path, tmp_path: Path) -> None:
    from wordnet_splits.authoring.folder_dataset import make_inventory

    (tmp_path / "mine.toml").write_text(RECIPE, "utf-8")
    scanned = build_benchmark(tmp_path / "mine.toml", roots={"boxes": boxes}).manifest
    make_inventory("boxes", roots={"boxes": boxes})
    frozen = build_benchmark(tmp_path / "mine.toml", out=tmp_path / "build").manifest
    assert frozen.fingerprint == scanned.fingerprint
    taken = {
        group: {r["image_id"]: (r["class_id"], r["label"]) for r in frozen.images("test", group).to_pylist()}
        for group in ("known", "unknown")
    }
    assert taken == {
        "known": {
            "val/both": ("golden retriever", 1),
            "val/even": ("zebra", 0),
            "val/zebra": ("zebra", 0),
        },
        "unknown": {"val/pot": ("teapot", -1)},
    }
    said = "left out, for showing a class of another role, or of none, besides: 1 image"
    for manifest in (scanned, frozen, read_manifest(tmp_path / "build" / "mine")):
        assert [(g.actual, g.reason) for g in manifest.groups if g.split == "test"] == [(3, said), (1, said)]
        assert manifest.data.complete


def test_without_images_or_inventory_nothing_is_promised(boxes: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(RECIPE, "utf-8")
    open_source("boxes", boxes)  # from here on it is declared
    groups = build_benchmark(tmp_path / "mine.toml").manifest.groups
    assert [(g.expected, g.status) for g in groups if g.split == "test"] == [(None, "awaiting boxes")] * 2


def test_too_few_images_are_left_of_a_class(boxes: Path, tmp_path: Path) -> None:
    text = RECIPE.replace("all = true", "per_class = 2").replace(', "golden retriever"', "")
    (tmp_path / "mine.toml").write_text(text, "utf-8")
    with raises(errors.RecipeError, where="mine.toml, line 7: group known, test", naming="2"):
        build_benchmark(tmp_path / "mine.toml", roots={"boxes": boxes})


@pytest.mark.parametrize("layout", ["", "images", "valid", "annotated"])
def test_images_are_found_where_tools_put_them(tmp_path: Path, layout: str) -> None:
    folder, file = {
        "": (".", "val.json"),
        "images": ("images", "annotations/val.json"),
        "valid": ("valid", "valid/_annotations.coco.json"),
        "annotated": ("images/val2017", "annotations/instances_val2017.json"),
    }[layout]
    own.table(tmp_path / folder, [(name,) for name in SHOWN], ("unused",))
    written(tmp_path / file)
    own.catalog(tmp_path / "boxes.tsv", ["zebra"], {"val": 3})
    own.declare(tmp_path, "boxes", "coco")
    assert [row[0] for row in rows(open_source("boxes", tmp_path))] == ["val/even", "val/mixed", "val/zebra"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"categories": []}, "categories"),
        ({"categories": [{"id": 7, "name": "zebra"}]}, ("3", "categories")),
        ({"categories": [{"id": 7}]}, ("id", "7", "categories")),
        ({"images": [{"id": 1, "file_name": "a.png"}, {"id": 1, "file_name": "b.png"}]}, ()),
        ({"annotations": [{"image_id": 100}]}, ("annotations", "category_id")),
        ({"categories": [*CATEGORIES, {"id": 7, "name": "okapi"}]}, ("categories", "id", "7")),
        ({"categories": [*CATEGORIES[:3], {"id": 9, "name": "zebra"}]}, ("7", "9", "zebra")),
        ({"annotations": [{"image_id": 100, "category_id": 7, "area": 10**400}]}, ()),
        ({"annotations": [{"image_id": 100, "category_id": 7, "area": float("nan")}]}, ()),
        ({"annotations": [{"image_id": 100, "category_id": 7, "bbox": [0, 0, 0.5, 10**400]}]}, ()),
        ({"categories": [*CATEGORIES[:3], {"id": 9, "name": "z\ud800bra"}]}, ()),
        ({"images": [{"id": 100, "file_name": "../both.png"}]}, ()),
        ({"images": [{"id": 100, "file_name": "/etc/both.png"}]}, ()),
        (None, ()),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, changed: dict[str, Any] | None, said: object) -> None:
    from wordnet_splits.linking.classes import declared_classes

    root = tmp_path / "boxes"
    own.table(root, [(name,) for name in SHOWN], ("unused",))
    own.table(tmp_path, [("both.png",)], ("unused",))
    own.declare(root, "boxes", "coco")
    if changed is not None:
        written(root / "test.json", **changed)
    with pytest.raises(errors.SplitsError) as caught:
        declared_classes("boxes", root)
    assert mentions(caught.value.line(), said)
    assert str(root) in caught.value.line()


@pytest.mark.parametrize(
    ("file", "folder", "above"),
    [
        ("annotations/train_annotations.json", "images/train", ""),
        ("annotations/instances_train.json", "images/train", "train\\"),
        ("train/labels.json", "train", ""),
    ],
)
def test_images_lie_where_exporters_put_them(tmp_path: Path, file: str, folder: str, above: str) -> None:
    from wordnet_splits.linking.classes import declared_classes

    own.table(tmp_path / folder, [(name,) for name in SHOWN], ("unused",))
    images = [{"id": 100 + n, "file_name": above + name} for n, name in enumerate(SHOWN)]
    written(tmp_path / file, images=images)
    own.declare(tmp_path, "boxes", "coco")
    found = declared_classes("boxes", tmp_path)
    assert (found.splits, len(found.classes)) == (("train",), len(CATEGORIES))


def test_a_file_whose_images_are_elsewhere_is_refused(tmp_path: Path) -> None:
    from wordnet_splits.linking.classes import declared_classes

    written(tmp_path / "train.json")
    own.declare(tmp_path, "boxes", "coco")
    with raises(errors.SourceError, where=tmp_path / "train.json"):
        declared_classes("boxes", tmp_path)


def test_a_category_that_no_annotation_has_may_share_a_name(tmp_path: Path) -> None:
    from wordnet_splits.linking.classes import declared_classes

    own.table(tmp_path, [(name,) for name in SHOWN], ("unused",))
    written(tmp_path / "test.json", categories=[{"id": 0, "name": "zebra"}, *CATEGORIES])  # as Roboflow does
    own.declare(tmp_path, "boxes", "coco")
    assert len(declared_classes("boxes", tmp_path).classes) == len(CATEGORIES)


def test_a_large_file_is_read_object_by_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = {
        "n": -12.5e3,
        "a": [{"é": '\\"[{', "deep": [[1], {"x": None}]}, 7, {"y": True}],
        "empty": [],
        "text": "zebra, 斑馬",
        "b": [{"z": 10**30}],
        "emoji": [{"x": "\U0001f600"}],
        "last": 123456,
    }
    path = tmp_path / "some.json"
    expected = [("a", held["a"][0]), ("a", held["a"][2]), ("b", held["b"][0]), ("emoji", held["emoji"][0])]  # type: ignore[index]
    for indent in (None, 3):
        for ascii_only in (True, False):
            path.write_text(json.dumps(held, indent=indent, ensure_ascii=ascii_only), "utf-8-sig")
            for piece in range(1, 40):
                monkeypatch.setattr(coco, "PIECE", piece)
                assert list(json_items(path)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"a": [{}',
        '{"a": [{}, ]}',
        '{"a" 1}',
        '{"a": [{"b": ]}',
        '{"a": [{}]}{"a": [{}]}',
        '{"a": [{}]} {}',
        '{"a": [{}]}]',
        '{"a": [{"b": "\\ud800"}]}',
        '{"\\uDc00": 1}',
        '{"a": [{}], "b": 1, "a": [{}]}',
        '{"a": [' + "[" * 100_000,
        "\xff",
    ],
)
def test_what_is_no_json_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(errors.SourceError) as caught:
        list(json_items(path))
    assert str(path) in caught.value.line()
    assert "\n" not in caught.value.line()
