"""Models and a benchmark in, the table out: the Python that the README shows, without a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from loaders.harness import Results, check_results, evaluate, load_model
from loaders.harness.models.origin import IN_PYTHON
from loaders.harness.results.metric_rows import POOLED
from loaders.harness.results.sentences import lines_below
from loaders.harness.results.tables import tables
from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError, SourceError, SplitsError
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.resolve import load_manifest

from ..models.networks import small_network


def network(seed: int, classes: int = 6) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, classes))


@pytest.fixture(scope="module")
def two_models() -> Results:
    """One model of one run, and one of two runs; only some of the sets."""
    given = {"alone": network(0), "seeds": [network(1), network(2)]}
    return evaluate(given, load_manifest("digits"), "msp,ensemble", groups=["digits-6-9"], device="cpu")


def test_a_model_and_a_benchmark_give_the_table() -> None:
    results = evaluate(network(0), "digits", "msp", groups=["digits-6-9"], device="cpu")
    (row,) = results.rows(metric="accuracy", detector="msp")
    title, columns, _, values = str(results).splitlines()[:4]
    assert title == tables(results)[0].title
    assert columns.split()[:3] == ["detector", "ACC", "AURC+OOD"]
    assert values.split()[:2] == ["msp", f"{100 * row['value']:.2f}"]
    assert repr(results) == "Results(digits: Sequential; msp)"
    assert f"<td>{100 * row['value']:.2f}</td>" in results._repr_html_()
    assert results.to_table().num_rows == len(results.to_pandas()) == len(results.rows())


def test_models_are_rows_of_their_own_and_declared_runs_are_averaged(two_models: Results) -> None:
    """Two architectures are never the mean and sd of one."""
    (table,) = tables(two_models)
    assert [cells[:2] for cells in table.cells] == [("alone", "msp"), ("seeds", "msp"), ("seeds", "ensemble")]
    accuracy = {cells[:2]: cells[2] for cells in table.cells}
    assert "±" not in accuracy["alone", "msp"]
    rows = two_models.rows(metric="accuracy", model="seeds", detector="msp", group=POOLED)
    runs = [row["value"] for row in rows]
    assert accuracy["seeds", "msp"].startswith(f"{100 * np.mean(runs):.2f}±")
    said = "\n".join(lines_below(two_models))
    assert "Model seeds: mean over 2 runs and their spread (0, 1); transform evaluation none, mean 0" in said
    assert "alone: left out, as one run is not an ensemble: ensemble" in two_models.about.notes
    assert {run.weights for run in two_models.about.runs} == {IN_PYTHON}
    assert all(run.device.startswith("cpu") for run in two_models.about.runs)


@pytest.mark.parametrize(
    ("model", "options", "where"),
    [
        ([network(0), network(1)], {}, "model"),
        (
            {"a": network(0), "b": network(0)},
            {},
            "digits",
        ),
        (network(0, 10), {"mapping": "identity"}, "Sequential"),
        ({"a": network(0), "b": network(0, 10)}, {}, "b: Sequential"),
        (network(0), {"prevalences": [1.5]}, "options of the evaluation"),
        (network(0), {"groups": ["gausian"]}, "digits"),
        ("timm", {}, "timm"),
        (3, {}, "int"),
    ],
)
def test_what_cannot_be_evaluated_is_one_line(model: Any, options: dict[str, Any], where: str) -> None:
    with raises(SplitsError, where=where):
        evaluate(model, "digits", "msp", device="cpu", **options)


def test_activations_are_kept_where_a_store_is_given(tmp_path: Path) -> None:
    one = load_model(small_network(), device="cpu")
    kept = evaluate(one, "digits", "msp", groups=[], store=tmp_path / "store")
    assert any((tmp_path / "store").iterdir())
    forgotten = evaluate(one, "digits", "msp", groups=[])
    assert kept.results.equals(forgotten.results)


def test_packed_images_give_the_same_results(tmp_path: Path) -> None:
    groups = ["digits-0-5", "digits-6-9"]
    pack(load_manifest("digits"), tmp_path / "store", groups=groups, splits=["test"])
    given: dict[str, Any] = {"model": network(0), "benchmark": "digits", "detectors": "msp", "device": "cpu"}
    plain = evaluate(**given, groups=groups[1:]).scores
    for packed in (tmp_path / "store", [tmp_path / "store"]):
        assert evaluate(**given, groups=groups[1:], packed=packed).scores.equals(plain)
    (pixels,) = (tmp_path / "store").rglob("digits-6-9.bin")
    content = pixels.read_bytes()
    pixels.write_bytes(content[:-1])
    with raises(SourceError, where="digits-6-9.bin"):
        evaluate(**given, groups=groups[1:], packed=tmp_path / "store")
    with raises(SourceError, where=tmp_path):
        evaluate(**given, groups=groups[1:], packed=tmp_path)


def test_results_of_another_model_are_not_replaced(two_models: Results, tmp_path: Path) -> None:
    place = tmp_path / "results"
    two_models.write(place)
    other = evaluate({"alone": network(5)}, "digits", "msp", groups=[], device="cpu")
    with raises(OutputError, where="results", naming="alone"):
        other.write(place)
    assert check_results(place).ok
    other.write(place, overwrite=True)
    more = evaluate({"alone": network(5), "b": network(6)}, "digits", "mls", groups=[], device="cpu")
    more.write(place)  # nothing of these models is lost
    assert Results.read(place).about.models == ("alone", "b")
    (place / "about.json").write_text("{}")
    with raises(OutputError, where="results"):
        more.write(place)


def test_a_preset_passes_over_what_a_model_lacks_and_a_name_is_refused() -> None:
    plain = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    found = evaluate(plain, "digits", "preset:abdelzad", groups=["uniform"])
    assert "mc_dropout" not in found.detectors
    assert "mahalanobis[on=logits]" in found.detectors
    said = "mc_dropout is left out: it needs dropout, and the model has no dropout layers"
    assert any(said in note for note in found.about.notes)
    with raises(DataError, where="Sequential", naming="mc_dropout"):
        evaluate(plain, "digits", "mc_dropout", groups=["uniform"])
    head_less = load_model(lambda x: (x.flatten(1), x.flatten(1)[:, :6]), device="cpu", model_id="f")
    without = evaluate(head_less, "digits", "preset:openood", groups=["uniform"])
    assert {"vim", "react"}.isdisjoint(without.detectors)
    assert {"knn", "msp", "klm"} <= set(without.detectors)
