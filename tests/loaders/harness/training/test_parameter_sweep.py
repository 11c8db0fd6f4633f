"""`train --sweep`: every combination has its own runs, and the least AURC on validation images is chosen."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from loaders.harness import train_sweep
from loaders.harness.training import load_checkpoint, load_recipe, parameter_sweep, train_recipe
from loaders.harness.training.data import Images, load_training_data, load_validation_data
from tests.loaders.harness.training.test_cli import call, train_digits
from tests.raising import raises
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError
from wordnet_splits.base.progress import Silent

OPTIONS: dict[str, Any] = {"epochs": 1, "device": "cpu", "progress": False}


def pooled_aurc(confidence: Any, wrong: Any) -> float:
    """Mean over k of the share of errors among the k most confident images."""
    errors = np.asarray(wrong, float)[np.argsort(-np.asarray(confidence), kind="stable")]
    return float((np.cumsum(errors) / np.arange(1, len(errors) + 1)).mean())


def test_the_least_aurc_of_validation_images_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, _, parts = load_validation_data("digits", progress=Silent())
    outliers = Images(known.pixels.flip(2), torch.full((len(known),), -1))
    monkeypatch.setattr(parameter_sweep, "load_validation_data", lambda *_, **__: (known, outliers, parts))
    values = {"tau": [0.04, 1]}
    swept = train_sweep(
        "digits-demo", "digits", tmp_path, values, method="logitnorm", seeds=range(2), **OPTIONS
    )
    expected: dict[str, list[float]] = {}
    for run in swept.runs:
        module = load_checkpoint(run.folder)
        with torch.no_grad():
            p, q = (module(images.pixels / 255).softmax(1) for images in (known, outliers))
        wrong = torch.cat([p.argmax(1) != known.labels, torch.ones(len(q), dtype=torch.bool)])
        aurc = pooled_aurc(torch.cat([p, q]).amax(1), wrong)
        record = module.metadata["validation"]
        assert record["aurc"] == pytest.approx(aurc, rel=1e-3)
        assert record["criterion"] == swept.criterion
        assert record["parameters"] == {"tau": run.metadata["recipe"]["method"]["tau"]}
        assert [part["split"] for part in record["parts"]] == ["val"]
        expected.setdefault(module.metadata["series"], []).append(record["aurc"])
    assert {row["series"]: row["aurc"] for row in swept.rows} == pytest.approx(
        {series: np.mean(aurcs) for series, aurcs in expected.items()}
    )
    assert swept.chosen["aurc"] == min(row["aurc"] for row in swept.rows)
    with swept.file.open(encoding="utf-8") as file:
        assert [row["series"] for row in csv.DictReader(file) if row["chosen"] == "True"] == [
            swept.chosen["series"]
        ]


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = train_digits(tmp_path, "--method", "confbranch[eps=1e-9]", "--epochs", "1")
    command += ["--sweep", "weight=0.1,0.3", "--sweep", "budget=0.2,0.4", "--json"]
    assert call(*command) == 0
    found = json.loads(capsys.readouterr().out)
    rows = found["sweep"]["rows"]
    assert [(row["weight"], row["budget"]) for row in rows] == [
        (0.1, 0.2),
        (0.1, 0.4),
        (0.3, 0.2),
        (0.3, 0.4),
    ]
    assert len(found["runs"]) == 4
    (best,) = (row for row in rows if row["chosen"])
    assert found["recipe"]["method"].items() >= {k: best[k] for k in ("weight", "budget")}.items()
    method = load_checkpoint(found["runs"][3]["model"]).metadata["recipe"]["method"]
    assert (method["weight"], method["budget"], float(method["eps"])) == (0.3, 0.4, 1e-9)
    assert call(*command) == 0  # finished runs are kept, and `train` knows them
    again = json.loads(capsys.readouterr().out)
    assert [row["seconds"] for row in again["runs"]] == [0, 0, 0, 0]
    assert again["sweep"] == found["sweep"]


def test_runs_of_a_sweep_name_their_values() -> None:
    recipe = load_recipe("kim-cifar-energy")
    names = {one.name: one.method.parameters for one in recipe.swept({"m_in": ["-23", "-5"], "m_out": [-5]})}
    assert len(names) == 2
    for name, parameters in names.items():
        assert len(name) <= 64
        assert parameters["weight"] == recipe.method.parameters["weight"]
        assert parameters["m_out"] == -5.0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"sweep": {"tua": [1]}}, UnknownNameError),
        ({"sweep": {"tau": [1, 1.0]}}, DataError),
        ({"sweep": {"tau": []}}, DataError),
        ({"sweep": {"tau": ["x"]}}, DataError),
    ],
)
def test_bad_values_are_refused(options: Any, error: type[SplitsError], tmp_path: Path) -> None:
    with raises(error):
        train_recipe("digits-demo", "digits", tmp_path, method="logitnorm", **options, **OPTIONS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sweep", "tau"],
        ["--sweep", "tau=1,"],
        ["--sweep", "tau=1", "--sweep", "tau=2"],
        ["--sweep", "tau=1", "--sweep-by", "knn"],
        ["--sweep-by", "msp"],
    ],
)
def test_bad_options_exit_2(arguments: list[str], tmp_path: Path) -> None:
    assert call(*train_digits(tmp_path, "--method", "logitnorm", *arguments)) == 2
    assert not list(tmp_path.rglob("model.json"))


def test_a_sweep_reads_no_other_images_than_validation() -> None:
    known, outliers, parts = load_validation_data("digits", progress=Silent())
    val = load_training_data("digits").val
    assert val is not None
    assert outliers is None
    assert torch.equal(known.pixels, val.pixels)
    assert {part["split"] for part in parts} == {"val"}
