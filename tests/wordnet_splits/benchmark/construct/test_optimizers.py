"""Abdelzad's benchmarks: sets of one size, frozen where ids are known, built whole from real data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from wordnet_splits import load_manifest
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.rules import Context, decide
from wordnet_splits.benchmark.rules.syntax import ClassRule
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.wordnet.taxonomy import Taxonomy

SMALL = 4840
WHOLE = 10_000


def expected(manifest: Manifest) -> dict[tuple[str, str], tuple[int | None, int | None, str]]:
    rows = [row for row in manifest.data.groups if row.split != "classes"]
    return {(row.group, row.split): (row.expected, row.actual, row.status) for row in rows}


@pytest.mark.parametrize(
    ("name", "known", "far"), [("mnist", "mnist", "fashion-mnist"), ("fashion", "fashion-mnist", "mnist")]
)
@pytest.mark.parametrize(("ending", "count"), [("", WHOLE), ("-small", SMALL)])
def test_every_set_has_as_many_images(name: str, known: str, far: str, ending: str, count: int) -> None:
    manifest = load_manifest(f"optimizers-{name}{ending}")
    found = expected(manifest)
    assert {group: row[0] for (group, split), row in found.items() if split == "test"} == dict.fromkeys(
        (known, far, "omniglot", "gaussian", "uniform"), count
    )
    assert (found[known, "val"][0], found[known, "train"][0]) == (6000, 54_000)
    awaited = {"fashion-mnist"} | ({"omniglot"} if not ending else set())
    assert {key[0] for key, row in found.items() if row[2] != "complete"} == awaited
    assert set(manifest.data.awaiting) == awaited
    assert all(row[1] is None for key, row in found.items() if key[0] in awaited)


def test_the_small_benchmark_holds_each_drawing_once() -> None:
    table = load_manifest("optimizers-mnist-small").images("test", "omniglot")
    ids = table["image_id"].to_pylist()
    assert len(set(ids)) == len(ids) == SMALL
    assert set(Counter(table["class_id"].to_pylist()).values()) == {20}
    assert set(table["view"].to_pylist()) == {"inverted-28"}
    known = load_manifest("optimizers-mnist-small").images("test", "mnist")
    assert set(Counter(known["class_id"].to_pylist()).values()) == {484}


def test_the_classes_of_a_publishers_split() -> None:
    rule = ClassRule.model_validate({"listed": "split:omniglot/evaluation"})
    ids = ["Greek/character01", "Angelic/character01", "Futurama/character01"]
    verdicts = decide(rule, "omniglot", ids, Context(taxonomy=Taxonomy.embedded()))
    assert [verdicts[i].accepted for i in ids] == [False, True, False]


@pytest.mark.oracle
def test_built_whole_from_real_data(real_data: Path, tmp_path: Path) -> None:
    """Our copy of Fashion-MNIST is not in the publisher's order, so the whole of it is a local build."""
    roots = {name: real_data / name for name in ("mnist", "fashion-mnist", "omniglot")}
    built = build_benchmark("optimizers-mnist-small", roots=roots, out=tmp_path, local=True).manifest
    assert built.name == "optimizers-mnist-small@local"
    assert (built.data.complete, list(built.data.awaiting), list(built.data.missing)) == (True, [], [])
    assert {row[:2] for key, row in expected(built).items() if key[1] == "test"} == {(SMALL, SMALL)}
    frozen = load_manifest("optimizers-mnist-small")
    for split, group in frozen.parts:
        assert built.images(split, group).equals(frozen.images(split, group)), group
    pytest.importorskip("torch")
    from loaders import UnknownDetectionSet

    drawings = UnknownDetectionSet(built, group="omniglot", split="test", roots=roots)
    image, label = drawings[7]
    assert (len(drawings), image.size, label) == (SMALL, (28, 28), -1)
    source = open_source("omniglot", roots["omniglot"])
    raw = source.decode(source.read([drawings.table["image_id"][7].as_py()])[0])
    shrunk = ImageOps.invert(raw).resize((28, 28), Image.Resampling.BILINEAR)
    assert np.array_equal(np.asarray(image), np.asarray(shrunk))
    digits = UnknownDetectionSet(built, group="mnist", split="test", roots=roots)
    assert Counter(digits[i][1] for i in range(0, SMALL, 40)).keys() <= set(range(10))


def test_places_against_whole_house_numbers() -> None:
    manifest = load_manifest("places-baseline")
    counts = {key: row[1] for key, row in expected(manifest).items()}
    assert counts == {
        ("places", "val"): 18_250,
        ("places", "test"): 18_250,
        ("svhn-train", "val"): 16_701,
        ("svhn-train", "test"): 16_701,
        ("svhn-test", "val"): 1_549,
        ("svhn-test", "test"): 1_549,
    }
    assert manifest.data.complete
    assert set(Counter(manifest.images("val", "places")["class_id"].to_pylist()).values()) == {50}
