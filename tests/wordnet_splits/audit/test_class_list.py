"""Lists of classes: tables of one column, and groups of benchmarks wherever these lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.audit.class_list import load_class_list
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.benchmark.manifest.loading import shipped_folder
from wordnet_splits.datasets.sources import open_source
from wordnet_splits.studies.class_sets import class_set
from wordnet_splits.wordnet.taxonomy import Taxonomy


@pytest.mark.usefixtures("own_datasets_forgotten")
@pytest.mark.parametrize("column", [None, "1"])
def test_names_of_one_column_may_hold_commas(tmp_path, column):
    names = ["tench, Tinca tinca", "goldfish, Carassius auratus"]
    own.class_folders(tmp_path, names, {"": 1})
    own.catalog(tmp_path / "fish.tsv", names, {"all": 1})
    own.declare(tmp_path, "fish", "folders")
    open_source("fish", tmp_path)
    path = tmp_path / "mine.tsv"
    path.write_text("\n".join(names), "utf-8")
    listed = load_class_list(path, Taxonomy.embedded(), of="fish", column=column)
    assert [c.id for c in listed.classes] == names


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("mine.tsv", "number,label\n0,tench\n", "2"),
        ("mine.tsv", "number,label\n0,tench\n", "label"),
        ("mine.csv", "class;name\n0;tench\n", None),
    ],
)
def test_a_table_with_another_delimiter_is_refused(tmp_path, name, text, column):
    (tmp_path / name).write_text(text, "utf-8")
    with raises(DataError, where=name):
        load_class_list(tmp_path / name, Taxonomy.embedded(), of="imagenet1k", column=column)


def test_a_group_of_a_benchmark_is_found_by_a_path_too(tmp_path):
    taxonomy = Taxonomy.embedded()
    named = load_class_list("unknown-imagenet:food", taxonomy)
    path = shipped_folder() / "unknown-imagenet"
    assert load_class_list(f"{path}:food", taxonomy).classes == named.classes
    with pytest.raises(UnknownNameError):
        load_class_list(f"{tmp_path}/nowhere:food", taxonomy)
    with pytest.raises(UnknownNameError) as unknown_benchmark:
        load_class_list("unknown-imagenett:food", taxonomy)
    assert "unknown-imagenet" in unknown_benchmark.value.near
    with pytest.raises(DataError) as error:
        load_class_list(path, taxonomy)
    assert f"{path}:food" in str(error.value.hint)
    file = tmp_path / "dogs:mine.txt"
    file.write_text("maltese\n", "utf-8")
    assert len(load_class_list(file, taxonomy).classes) == 1


@pytest.mark.parametrize(("name", "delimiter"), [("mine.tsv", "\t"), ("mine.csv", ",")])
def test_a_quote_that_is_not_closed_does_not_hide_the_lines_after_it(tmp_path, name, delimiter):
    rows = [("n02085936", '"Maltese'), ("n02084071", "dog"), ("n01440764", "tench")]
    path = tmp_path / name
    path.write_text("".join(f"{delimiter.join(row)}\n" for row in rows), "utf-8")
    with raises(DataError, naming=name):
        load_class_list(path, Taxonomy.embedded())


@pytest.mark.parametrize(
    "content", [{"near": ["dog", "cat"], "far": ["spoon", "fork"]}, {"classes": ["dog", "cat"]}]
)
def test_short_lists_under_the_keys_of_an_object_are_not_read_as_classes(tmp_path, content):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(content), "utf-8")
    with raises(DataError, where="mine.json"):
        load_class_list(path, Taxonomy.embedded())
    key = next(iter(content))
    assert [c.id for c in load_class_list(path, Taxonomy.embedded(), column=key).classes] == ["dog", "cat"]


@pytest.mark.parametrize("name", ["tiered-imagenet", "imagenette", "imagenet-x"])
def test_a_set_of_the_field_is_a_list(name: str, wordnet: Taxonomy) -> None:
    known = class_set(name)
    assert sorted(load_class_list(name, wordnet).names) == sorted(one.class_id for one in known.classes)
    group = known.recipe.group[-1].name
    of_group = sorted(one.class_id for one in known.classes if one.group == group)
    assert sorted(load_class_list(f"{name}:{group}", wordnet).names) == of_group


def test_no_class_of_a_divided_imagenet_leaks() -> None:
    found = audit_classes("tiered-imagenet:test", "tiered-imagenet:train")
    assert (found.counts["classes"], found.known, found.counts["leaking"]) == (160, 351, 0)


@pytest.mark.usefixtures("own_datasets_forgotten")
def test_a_custom_dataset_is_a_list(command: Command, tmp_path: Path) -> None:
    own.class_folders(tmp_path / "pics", ["zebra", "teapot"], {"": 2})
    own.catalog(tmp_path / "pics" / "mypics.tsv", ["zebra", "teapot"], {"all": 2})
    own.declare(tmp_path / "pics", "mypics", "folders")
    root = ("--root", f"mypics={tmp_path / 'pics'}")
    found = command("audit", "list", "mypics", "--json", *root)
    assert found.code == 1
    assert [(one["id"], one["relation"]) for one in found.json["classes"] if one["relation"]] == [
        ("zebra", "equal"),
        ("teapot", "equal"),
    ]
    far = command("audit", "thresholds", "cifar10", "--against", "mypics", "--json", *root).json
    assert (far["known"], far["equal"]) == (2, 0)


def test_an_unknown_group_or_set_offers_what_is_known(command: Command) -> None:
    assert mentions(command("audit", "list", "imagenet-x:oood").error, "oood", "ood")
    assert mentions(command("audit", "list", "teired-imagenet").error, "tiered-imagenet")
