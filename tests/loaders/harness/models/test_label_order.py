"""A source's name as a mapping: the columns are its classes in the publisher's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from loaders.harness import evaluate_arrays, image_ids
from loaders.harness.models.class_map import LabelSpace, class_map
from wordnet_splits.base.errors import UnknownNameError
from wordnet_splits.benchmark.manifest.tables import CLASS_SCHEMA, class_table
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import catalog_names, load_catalog
from wordnet_splits.datasets.catalog.declarations import read_declaration

CATALOG = """class_id\tindex\tname\tsuperclass\twnids\tmapped\twhy\tcount_test\tcount_group
zebra\t0\tzebra\t\tn02391049\texact\t\t10\t
teapot\t1\tteapot\t\tn04398044\texact\t\t10\t
beaver\t2\tbeaver\t\tn02363005\texact\t\t10\t
"""


def table_of(source: str, class_ids: list[str], wnids: Mapping[str, tuple[str, ...]]) -> pa.Table:
    """Return a class table in which the classes of a source, in an order, are the labels."""
    rows = [
        {
            **dict.fromkeys(CLASS_SCHEMA.names),
            "via": (),
            "source": source,
            "class_id": c,
            "name": c,
            "wnids": wnids[c],
            "role": "id",
            "group": "a",
            "label": n,
        }
        for n, c in enumerate(class_ids)
    ]
    return class_table(rows)


@pytest.mark.parametrize("source", catalog_names())
def test_columns_are_those_of_the_catalog(source: str) -> None:
    catalog = load_catalog(source)
    class_ids = sorted(catalog, key=lambda c: c.class_id[::-1])  # an order that no publisher has
    space = LabelSpace.of(
        table_of(source, [c.class_id for c in class_ids], {c.class_id: c.wnids for c in catalog})
    )
    found = class_map(space, len(catalog), mapping=source)
    assert found.columns == tuple(c.index for c in class_ids)
    assert found.origin == f"source:{source}"


def lines(path: Path, column: int = 0) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")[column]


def table(path: Path, column: int) -> list[str]:
    return list(lines(path, column))[1:]


PUBLISHED: dict[str, Callable[[Path], list[str]]] = {
    "caltech256": lambda facts: table(facts / "caltech256/classes_counts.tsv", 0)[:256],
    "cifar10": lambda facts: table(facts / "cifar/cifar10_classes.tsv", 1),
    "cifar100": lambda facts: table(facts / "cifar/cifar100_classes.tsv", 1),
    "dtd": lambda facts: list(lines(facts / "dtd/classes.txt")),
    "food101": lambda facts: list(lines(facts / "food101/classes.txt")),
    "imagenet-a": lambda facts: list(lines(facts / "imagenet/imagenet_a_wnids.txt")),
    "imagenet-o": lambda facts: list(lines(facts / "imagenet/imagenet_o_wnids.txt")),
    "imagenet-r": lambda facts: list(lines(facts / "imagenet/imagenet_r_wnids.txt")),
    "imagenet1k": lambda facts: table(facts / "imagenet/imagenet1k_classes.tsv", 1),
    "lsun": lambda facts: list(lines(facts / "lsun/scene_categories.txt")),
    "openood-tin597": lambda facts: table(facts / "openood/tin597_classes.tsv", 0),
    "places365": lambda facts: [
        line.split(" ")[0][3:] for line in lines(facts / "places365/categories_places365.txt")
    ],
    "sun397": lambda facts: [line[3:] for line in lines(facts / "sun397/classes.txt")],
}
"""Source -> the classes in the order of its publisher's labels."""


@pytest.mark.parametrize("source", PUBLISHED)
def test_columns_are_those_of_the_publisher(source: str, facts: Path) -> None:
    published = [
        name.split(" ")[0] if name[:1] == "n" and name[1:9].isdecimal() else name
        for name in PUBLISHED[source](facts)
    ]
    catalog = load_catalog(source)
    space = LabelSpace.of(table_of(source, sorted(published), {c.class_id: c.wnids for c in catalog}))
    found = class_map(space, len(catalog), mapping=source)
    assert [published[column] for column in found.columns] == sorted(published)


def test_columns_of_a_declared_dataset_are_those_of_the_catalog_it_carries(tmp_path: Path) -> None:
    (tmp_path / "mypics.tsv").write_text(CATALOG)
    (tmp_path / "dataset.toml").write_text('name = "mypics"\nlayout = "folders"\ncatalog = "mypics.tsv"\n')
    classes = table_of("mypics", ["teapot", "zebra"], {"teapot": ("n04398044",), "zebra": ("n02391049",)})
    carried = {"mypics": read_declaration(tmp_path / "dataset.toml")}
    assert class_map(LabelSpace.of(classes, carried), 3, mapping="mypics").columns == (1, 0)
    with pytest.raises(UnknownNameError) as refused:  # nobody knows its order
        class_map(LabelSpace.of(classes), 3, mapping="mypics")
    assert refused.value.where is None


def test_every_evaluation_knows_the_order_of_a_carried_catalog(tmp_path: Path) -> None:
    """Digits from 9 to 0, as a benchmark that carries such a catalog has them."""
    head = CATALOG.partition("\n")[0]
    rows = [f"{digit}\t{n}\t{digit}\t\tn04398044\texact\t\t10\t" for n, digit in enumerate("9876543210")]
    (tmp_path / "digits.tsv").write_text("\n".join([head, *rows, ""]))
    (tmp_path / "dataset.toml").write_text('name = "digits"\nlayout = "folders"\ncatalog = "digits.tsv"\n')
    declared = {"digits": read_declaration(tmp_path / "dataset.toml")}
    digits = load_manifest("digits")
    labels = digits.parts["test", "digits-0-5"]()["label"].to_numpy()
    uniform = np.zeros((len(image_ids(digits, "uniform")), 10), np.float32)
    arrays = {
        name: {"logits": logits, "ids": image_ids(digits, name)}
        for name, logits in (
            ("digits-0-5", 9 * np.eye(10, dtype=np.float32)[9 - labels]),
            ("uniform", uniform),
        )
    }
    carrying = replace(digits, declarations=declared)
    options = {"groups": ["uniform"], "mapping": "digits"}
    of_arrays = evaluate_arrays(arrays, "msp", benchmark=carrying, **options)
    assert of_arrays.values("accuracy", group="(pooled)")["value"].tolist() == [1.0]
    pytest.importorskip("torch", reason="pip install '.[torch]'")
    from loaders.harness import load_model
    from loaders.harness.extraction.extractor import BenchmarkImages, Extractor
    from loaders.harness.extraction.outputs import Store

    from .networks import small_network

    model = load_model(small_network(10), device="cpu", mapping="digits")
    extractor = Extractor(model, BenchmarkImages(digits), Store(tmp_path / "store"))
    extractor.images.benchmark = carrying
    outputs = extractor.read("test", "digits-0-5", frozenset({"logits"}))
    assert outputs.classes is not None
    assert outputs.classes.columns == (9, 8, 7, 6, 5, 4)


def test_fashion_mnist_is_not_in_alphabetical_order() -> None:
    space = LabelSpace.of(load_manifest("optimizers-fashion").classes)
    assert class_map(space, 10, mapping="fashion-mnist").columns == tuple(range(10))
