"""What ``about.json`` states of networks: columns that fit each other, and every run of the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.metadata import RunFacts
from loaders.harness.results.results import Results
from tests.loaders.harness.altering import reseal
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.text_formats import validate

USED = {"restrict": "columns", "columns": 6, "of": 10, "background": None, "mapping": "identity"}
FACTS: dict[str, Any] = {
    "run": 0,
    "model": "m",
    "name": "m-0",
    "model_key": "0",
    "weights": {},
    "device": "cpu",
    "transforms": {},
    "class_map": USED,
    "known_classes": 6,
    "other_columns": False,
    "named": True,
}


@pytest.mark.parametrize(
    ("used", "facts"),
    [
        ({}, {}),
        ({"background": 9}, {"other_columns": True}),
        ({"restrict": "full", "columns": 10}, {"other_columns": True}),
        ({"restrict": "full", "columns": 9, "background": 9}, {"other_columns": True}),
    ],
)
def test_columns_that_fit_are_read(used: dict[str, Any], facts: dict[str, Any]) -> None:
    read = validate(RunFacts, FACTS | facts | {"class_map": USED | used}, where="about.json")
    assert read.class_map is not None


@pytest.mark.parametrize(
    ("used", "facts"),
    [
        ({"columns": 10**15}, {}),
        ({"of": 5}, {}),
        ({"of": 0}, {}),
        ({"background": -1}, {"other_columns": True}),
        ({"background": 10}, {"other_columns": True}),
        ({"background": 9}, {}),
        ({"columns": 5}, {}),
        ({"columns": 7}, {}),
        ({}, {"other_columns": True}),
        ({}, {"known_classes": 7}),
    ],
)
def test_columns_that_contradict_each_other_are_refused(used: dict[str, Any], facts: dict[str, Any]) -> None:
    with pytest.raises(DataError) as refused:
        validate(RunFacts, FACTS | facts | {"class_map": USED | used}, where="about.json")
    assert refused.value.where == "about.json"


@pytest.mark.parametrize("run", [1, 10**15])
def test_tables_of_a_run_that_is_not_described_are_refused(run: int, tmp_path: Path) -> None:
    manifest = fake_manifest([("known", "id", "test", 12), ("far", "far", "test", 12)])
    evaluate_runs(manifest, [fake_run(manifest)], ["msp"]).write(tmp_path / "results")
    reseal(tmp_path / "results/about.json", lambda sealed: sealed["about"]["runs"][0].update(run=run))
    with pytest.raises(DataError) as refused:
        Results.read(tmp_path / "results")
    assert Path(str(refused.value.where)).parent == tmp_path / "results"
