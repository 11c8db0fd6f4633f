"""Exported scores of anyone's: whole by their checksums, nonsense inside."""

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
from loaders.harness.results.exported_scores import DESCRIPTION
from tests.loaders.harness.altering import alterations, altered, first, reseal
from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.parquet import read_table, write_table
from wordnet_splits.base.text_formats import CHECKSUM
from wordnet_splits.base.untrusted import sha256_of

SCORES, PREDICTIONS = "scores.parquet", "predictions.parquet"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    evaluate({"one": model}, "digits", "msp,mls", groups=["uniform"]).write(folder / "one")
    export_scores(folder / "one", folder / "scores")
    return folder / "scores"


@pytest.fixture
def table(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "scores")) / "digits"


def rewrite(folder: Path, file: str, change: Callable[[pa.Table], pa.Table]) -> None:
    write_table(change(read_table(folder / file)), folder / file)
    digest = sha256_of(folder / file, largest=1 << 30)
    reseal(folder / DESCRIPTION, lambda content: content["files"].update({file: digest}))


REFUSED: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    "infinity": (SCORES, first("msp/0", float("inf"))),
    "no predictions": (PREDICTIONS, lambda table: table.slice(0, 0)),
}
"""See test_score_table for every form that is refused."""
ODD = {
    "no confidence of an image": (SCORES, first("msp/0", None)),
    "roles that are none": (SCORES, lambda table: table.set_column(4, "role", table["group"])),
    "a prediction beyond": (PREDICTIONS, first("prediction/(model)/0", 2**31 - 1)),
    "no prediction": (PREDICTIONS, first("prediction/(model)/0", None)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_of_another_form_is_refused(name: str, table: Path) -> None:
    file, change = REFUSED[name]
    rewrite(table, file, change)
    with pytest.raises(DataError) as refused:
        recompute(table.parent)
    assert Path(str(refused.value.where)).parent == table


@pytest.mark.parametrize("name", ODD)
def test_odd_values_end_in_a_line_or_rows(name: str, table: Path) -> None:
    rewrite(table, *ODD[name])
    ends_well(table.parent)


def ends_well(scores: Path) -> None:
    line = ""
    try:
        recompute(scores, ["auroc", "accuracy"]).rows()
    except SplitsError as error:
        line = str(error)
    assert "\n" not in line


@pytest.mark.fuzz
def test_every_value_of_a_description_that_is_altered_ends_in_a_line_or_rows(table: Path) -> None:
    whole = (table / DESCRIPTION).read_bytes()
    content = json.loads(whole)
    content.pop(CHECKSUM)
    for _, path, new in alterations(content):
        other = altered(content, path, new)

        def change(document: dict[str, Any], other: dict[str, Any] = other) -> None:
            document.clear()
            document.update(other)

        reseal(table / DESCRIPTION, change)
        ends_well(table.parent)
        (table / DESCRIPTION).write_bytes(whole)
