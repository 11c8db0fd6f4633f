"""Score tables of anyone's: whole by their checksums, nonsense or paths of other folders inside."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from torch import nn

from loaders.harness import evaluate, export_scores, recompute
from loaders.harness.score_table.layout import DESCRIPTION, IMAGES_FILE, MODELS_FILE, part_path
from tests.loaders.harness.altering import alterations, altered, reseal
from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.parquet import read_table, write_table
from wordnet_splits.base.schemas import CHECKSUM
from wordnet_splits.base.untrusted import sha256_of

PART = part_path("confidences", "digits", "one", "one")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    evaluate({"one": model}, "digits", "msp,mls", groups=["uniform"]).write(folder / "one")
    export_scores(folder / "one", folder / "scores")
    return folder / "scores"


@pytest.fixture
def scores(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "scores"))


def rewrite(folder: Path, file: str, columns: dict[str, Any]) -> None:
    """Change columns of a file of a table, each by a value for its rows or by a function of them."""
    table = read_table(folder / file)
    for name, value in columns.items():
        place = table.schema.names.index(name)
        values = table[name].to_pylist()
        values = value(values) if callable(value) else [value] * len(values)
        field = table.schema.field(name)
        table = table.set_column(place, field, pa.array(values, field.type))
    write_table(table, folder / file)
    digest = sha256_of(folder / file, largest=1 << 30)
    reseal(folder / DESCRIPTION, lambda content: content["files"].update({file: digest}))


ELSEWHERE = ("../../../../etc/passwd", "/etc/passwd", "..", "../../../outside", "a/../../../../outside", "\0")


@pytest.mark.parametrize("column", ["model", "entry"])
@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_path_stays_in_the_folder_of_the_table(column: str, path: str, scores: Path) -> None:
    outside = scores.parent / "outside.parquet"
    shutil.copyfile(scores / PART, outside)
    rewrite(scores, MODELS_FILE, {column: path})
    model, entry = (path, "one") if column == "model" else ("one", path)
    named = part_path("confidences", "digits", model, entry)
    digest = sha256_of(outside, largest=1 << 30)
    reseal(scores / DESCRIPTION, lambda content: content["files"].update({named: digest}))
    with pytest.raises(DataError) as refused:
        recompute(scores)
    assert str(refused.value.where).startswith(str(scores))


def test_a_link_out_of_the_folder_is_refused(scores: Path) -> None:
    (scores / PART).rename(scores.parent / "outside.parquet")
    (scores / PART).symlink_to(scores.parent / "outside.parquet")
    with pytest.raises(DataError) as refused:
        recompute(scores)
    assert refused.value.where == str(scores)


def first(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value, *values[1:]]


LIES: dict[str, tuple[str, dict[str, Any]]] = {
    "another benchmark": (MODELS_FILE, {"benchmark": "mnist"}),
    "a benchmark elsewhere": (IMAGES_FILE, {"benchmark": "../../x"}),
    "no benchmark": (MODELS_FILE, {"benchmark": None}),
    "no model": (MODELS_FILE, {"model": None}),
    "no entry": (MODELS_FILE, {"entry": None}),
    "images from one on": (IMAGES_FILE, {"image": lambda values: [value + 1 for value in values]}),
    "no numbers": (IMAGES_FILE, {"image": None}),
    "a role that is none": (IMAGES_FILE, {"role": "friend"}),
    "no role": (IMAGES_FILE, {"role": None}),
    "no group": (IMAGES_FILE, {"group": None}),
    "a group of two roles": (IMAGES_FILE, {"role": first("far")}),
    "no image ids": (IMAGES_FILE, {"image_id": None}),
    "a confidence of NaN": (PART, {"confidence": first(float("nan"))}),
    "a confidence of infinity": (PART, {"confidence": first(float("inf"))}),
    "no confidence": (PART, {"confidence": first(None)}),
    "an image beyond": (PART, {"image": first(2**31 - 1)}),
    "an image below": (PART, {"image": first(-1)}),
    "no image": (PART, {"image": first(None)}),
    "an image twice": (PART, {"image": lambda values: [values[0], *values[:-1]]}),
    "detectors in turn": (PART, {"detector": lambda values: ["msp", "mls"] * (len(values) // 2)}),
    "no detector": (PART, {"detector": None}),
    "no truth": (PART, {"correct": None}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_table_that_lies_ends_in_a_line_or_rows(lie: str, scores: Path) -> None:
    rewrite(scores, *LIES[lie])
    ends_well(scores)


@pytest.mark.parametrize("file", [IMAGES_FILE, MODELS_FILE, PART])
def test_a_file_without_rows_is_refused(file: str, scores: Path) -> None:
    write_table(read_table(scores / file).slice(0, 0), scores / file)
    digest = sha256_of(scores / file, largest=1 << 30)
    reseal(scores / DESCRIPTION, lambda content: content["files"].update({file: digest}))
    with pytest.raises(DataError) as refused:
        recompute(scores)
    assert refused.value.where == str(scores / file)


def test_networks_of_a_benchmark_without_images_are_refused(scores: Path) -> None:
    rewrite(scores, *LIES["another benchmark"])
    with pytest.raises(DataError) as refused:
        recompute(scores)
    assert refused.value.where == str(scores / MODELS_FILE)


CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "another entry": {"entry": "nobody"},
    "no run": {"run": None},
    "a run below 0": {"run": -1},
    "no detectors": {"detectors": None},
    "more detectors": {"detectors": 9},
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_networks_that_contradict_the_rest_are_refused(what: str, scores: Path) -> None:
    rewrite(scores, MODELS_FILE, CONTRADICTIONS[what])
    with pytest.raises(DataError) as refused:
        recompute(scores)
    where = PART if what == "more detectors" else MODELS_FILE
    assert refused.value.where == str(scores / where)


def test_a_network_twice_is_refused(scores: Path) -> None:
    table = read_table(scores / MODELS_FILE)
    write_table(pa.concat_tables([table, table]), scores / MODELS_FILE)
    digest = sha256_of(scores / MODELS_FILE, largest=1 << 30)
    reseal(scores / DESCRIPTION, lambda content: content["files"].update({MODELS_FILE: digest}))
    with pytest.raises(DataError) as refused:
        recompute(scores)
    assert refused.value.where == str(scores / MODELS_FILE)


def test_another_number_of_images_is_refused(scores: Path) -> None:
    reseal(scores / DESCRIPTION, lambda content: content["benchmarks"][0].update(images=10**15))
    with pytest.raises(DataError) as refused:
        recompute(scores)
    assert refused.value.where == str(scores / IMAGES_FILE)


def ends_well(scores: Path) -> None:
    line = ""
    try:
        rows = recompute(scores, ["auroc", "accuracy"]).rows()
        assert all(row["value"] is not None for row in rows)
    except SplitsError as error:
        line = str(error)
    assert "\n" not in line


@pytest.mark.fuzz
def test_every_value_of_a_description_that_is_altered_ends_in_a_line_or_rows(scores: Path) -> None:
    whole = (scores / DESCRIPTION).read_bytes()
    content = json.loads(whole)
    content.pop(CHECKSUM)
    for _, path, new in alterations(content):
        other = altered(content, path, new)

        def change(document: dict[str, Any], other: dict[str, Any] = other) -> None:
            document.clear()
            document.update(other)

        reseal(scores / DESCRIPTION, change)
        ends_well(scores)
        (scores / DESCRIPTION).write_bytes(whole)
