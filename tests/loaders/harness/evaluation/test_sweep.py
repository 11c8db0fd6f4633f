"""Which sets are gone over, what a detector fits on, and on what its parameters are chosen."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score

from loaders.harness import check_results
from loaders.harness.cli.main import app
from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.detectors import detector_spec, get_detector
from loaders.harness.detectors.registry import configure
from loaders.harness.evaluation.fitting import sweep_grid
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.extraction.outputs import GroupOutputs, ModelRun
from loaders.harness.results.metric_rows import POOLED
from loaders.harness.results.results import Results
from loaders.harness.results.rows_from_scores import EvaluatedSets
from loaders.harness.results.sentences import lines_below
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, Reading, fake_manifest, fake_run
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.wordnet.taxonomy import load

DIGITS = load_manifest("digits")


def test_sets_may_be_chosen_and_what_is_left_out_is_named() -> None:
    found = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp", groups=["near-a"])
    assert set(found.scores["group"].to_pylist()) == {"known", "near-a"}
    missing = [(row.group, row.scored, row.expected) for row in found.about.missing]
    assert missing == [("far-a", 0, 70), ("far-b", 0, 150)]
    assert found.rows(metric="aurc_unknown", group=POOLED)[0]["role"] == "near"
    with raises(UnknownNameError, where="made", naming="near-b", near="near-a"):
        evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp", groups=["near-b"])


def test_a_set_that_awaits_its_source_is_missing() -> None:
    manifest = load_manifest("unknown-cifar")
    selection = EvaluatedSets.from_manifest(manifest)
    assert list(selection.test) == ["cifar-40", "cifar-60", "svhn", "dtd", "gaussian"]
    counts = {group: manifest.images("test", group).num_rows for group in selection.test}
    (lsun,) = selection.missing(counts)
    assert tuple(lsun.model_dump().values()) == ("lsun", "far", 0, 4000, "awaiting lsun")


class Watched:
    """A run that records what is asked of it."""

    def __init__(self, manifest: Manifest) -> None:
        self.asked: list[tuple[str, str]] = []
        inner = fake_run(manifest)

        def read(split: str, group: str, needs: frozenset[str]) -> GroupOutputs:
            self.asked.append((split, group))
            return inner.group(split, group, needs)

        self.run = ModelRun("watched", "w", Reading(read))


def test_parameters_are_chosen_on_validation_images_alone() -> None:
    watched = Watched(OPEN_SET)
    chosen = configure(
        detector_spec(Sweeper, needs=("logits",), sweep={"power": (-1, 1, 3)}), {}, label="sweeper"
    )
    found = evaluate_runs(OPEN_SET, [watched.run], [chosen], sweep=True)
    first_test = next(i for i, part in enumerate(watched.asked) if part[0] == "test")
    assert set(watched.asked[:first_test]) == {("val", "known"), ("val", "negative")}
    facts = found.about.detector("sweeper", 0)
    assert facts.params == {"power": 1}  # the first of two that rank equally; -1 ranks backwards
    assert facts.chosen_on == "auroc of known/val against negative/val"
    said = "Chosen for sweeper by auroc of known/val against negative/val: power=1."
    assert said in lines_below(found)
    plain = evaluate_runs(OPEN_SET, [watched.run], [chosen])
    assert plain.about.detector("sweeper", 0).chosen_on is None


@dataclass(frozen=True)
class Sweeper:
    """The maximum logit to an odd power."""

    power: int = 3

    def score(self, state: None, data: Arrays) -> Array:
        """Return it."""
        return np.asarray(np.asarray(data["logits"], dtype=float).max(axis=1) + 10) ** self.power


def test_values_that_cannot_be_used_are_passed_over_and_named() -> None:
    found = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "knn", sweep=True)  # of 80 training images
    facts = found.about.detector("knn", 0)
    assert facts.params == {"k": 50}
    without = "[k=100], [k=200], [k=500], [k=1000]"
    assert facts.chosen_on == f"auroc of known/val against negative/val without {without}"
    few = fake_manifest([("id", "id", s, 20) for s in ("train", "val", "test")] + [("out", "far", "val", 9)])
    with raises(DataError, where="'knn'", naming=("20", "50")):
        evaluate_runs(few, [fake_run(few)], "knn", sweep=True)


def test_all_that_was_tried_is_in_the_results(tmp_path: Path) -> None:
    from loaders.harness import compare, report

    run = fake_run(OPEN_SET)
    found = evaluate_runs(OPEN_SET, [run], "knn,energy,msp", sweep=True)
    rows = found.sweeps.to_pylist()
    assert {row["on"] for row in rows} == {"auroc of known/val against negative/val"}
    logits = [np.asarray(run.group("val", g).arrays["logits"], float) for g in ("known", "negative")]
    truth = np.repeat([1, 0], [len(part) for part in logits])
    tried = {json.loads(row["params"])["T"]: row["auroc"] for row in rows if row["detector"] == "energy"}
    assert tried == {
        t: pytest.approx(roc_auc_score(truth, t * logsumexp(np.concatenate(logits) / t, axis=1)), abs=1e-4)
        for t in (0.1, 1, 10, 100)
    }
    first, *others = (row for row in rows if row["detector"] == "knn")
    assert (first["reason"], first["auroc"] is None) == (None, False)
    assert {row["reason"].partition(" for ")[0] for row in others} == {"80 training images are too few"}
    found.write(tmp_path)
    assert Results.read(tmp_path).sweeps.equals(found.sweeps)
    (table,) = compare(tmp_path, bootstrap=0).sweeps
    assert [row[1:6] for row in table.cells] == [
        ("knn", "0", "5", "4", "k=50"),
        ("energy", "0", "4", "0", "T=1"),
    ]
    assert check_results(tmp_path, OPEN_SET).ok
    page = report(tmp_path, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "80 training images are too few for the 200-th nearest" in page
    assert "Values tried by sweeps" in page
    evaluate_runs(OPEN_SET, [run], "msp").write(tmp_path)
    assert not (tmp_path / "sweeps.parquet").exists()


def test_an_altered_or_absent_record_is_refused(swept: Results, tmp_path: Path) -> None:
    replaced(swept, "sweeps", 0, "auroc", 0.1).write(tmp_path / "other")
    swept.write(tmp_path / "results")
    record = tmp_path / "results" / "sweeps.parquet"
    record.write_bytes((tmp_path / "other" / "sweeps.parquet").read_bytes())
    with raises(DataError, where=record):
        Results.read(tmp_path / "results")
    record.unlink()
    with raises(DataError, where=record):
        Results.read(tmp_path / "results")


def replaced(results: Results, table: str, row: int, column: str, value: object) -> Results:
    rows = getattr(results, table).to_pylist()
    rows[row][column] = value
    return replace(results, **{table: pa.Table.from_pylist(rows, schema=getattr(results, table).schema)})


def stated(results: Results, **change: Any) -> Results:
    """Return results that state other facts of their only detector."""
    (facts,) = results.about.detectors
    detectors = (facts.model_copy(update=change),)
    return replace(results, about=results.about.model_copy(update={"detectors": detectors}))


LIES = {
    "another value was better": lambda held: replaced(held, "sweeps", 0, "auroc", 0.99),
    "chosen on test images": lambda held: replaced(
        held, "sweeps", 1, "on", "auroc of known/test against far-a/test"
    ),
    "of no detector here": lambda held: replaced(held, "sweeps", 3, "detector", "msp"),
    "the chosen value was not tried": lambda held: replace(
        held, sweeps=held.sweeps.filter(pc.not_equal(held.sweeps["params"], '{"T": 1}'))
    ),
    "no record": lambda held: replace(held, sweeps=held.sweeps.slice(0, 0)),
    "scored with another value": lambda held: stated(held, params={"T": 10}),
    "not chosen at all": lambda held: stated(held, chosen_on=None),
}


@pytest.fixture(scope="module")
def swept() -> Results:
    return evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "energy", sweep=True)


@pytest.mark.parametrize("lie", LIES)
def test_a_record_that_does_not_agree_with_what_was_chosen_is_named(
    lie: str, swept: Results, tmp_path: Path
) -> None:
    from loaders.harness import compare

    LIES[lie](swept).write(tmp_path)
    found = check_results(tmp_path, OPEN_SET)
    assert {difference.table for difference in found.differences} == {"sweeps"}
    str(compare(tmp_path, bootstrap=0))


def test_parameters_chosen_on_test_images_are_named_without_the_benchmark(
    swept: Results, tmp_path: Path
) -> None:
    (chosen_on,) = {facts.chosen_on for facts in swept.about.detectors}
    assert chosen_on is not None
    on_test = chosen_on.replace("/val", "/test")
    tried = swept.sweeps.set_column(3, "on", pa.array([on_test] * len(swept.sweeps)))
    replace(stated(swept, chosen_on=on_test), sweeps=tried).write(tmp_path)
    found = check_results(tmp_path)
    assert found.benchmark.startswith("images not compared")
    assert {(one.table, one.column, one.stored) for one in found.differences} == {("sweeps", "on", on_test)}


def test_a_sweep_leaves_given_parameters_as_they_are() -> None:
    method = detector_spec(Sweeper, needs=("logits",), sweep={"power": (-1, 1, 3)})
    given = configure(method, {"power": 3}, label="sweeper")
    about = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], [given], sweep=True).about
    facts = about.detector("sweeper[power=3]", 0)
    assert (facts.params, facts.chosen_on) == ({"power": 3}, None)
    odin = [dict(one.params) for one in sweep_grid(get_detector("odin", T=10))]
    assert odin == [{"T": 10.0, "eps": 0.0014}, {"T": 10.0, "eps": 0.0028}]


def test_without_ood_validation_images_nothing_is_chosen() -> None:
    with raises(DataError, where="digits", naming="--sweep"):
        evaluate_runs(DIGITS, [fake_run(DIGITS)], "energy", sweep=True)


def test_a_detector_fits_on_id_images_of_its_split_alone() -> None:
    watched = Watched(OPEN_SET)
    evaluate_runs(OPEN_SET, [watched.run], ["knn[k=5]", "tempscale"])
    assert {part for part in watched.asked if part[0] != "test"} == {("train", "known"), ("val", "known")}


def test_a_preset_is_swept_without_a_head_too() -> None:
    found = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "preset:openood", sweep=True)
    assert "react" not in found.detectors
    assert found.about.detector("knn", 0).chosen_on


def test_a_detector_that_learns_from_outliers_sees_validation_images_alone() -> None:
    watched = Watched(OPEN_SET)
    found = evaluate_runs(OPEN_SET, [watched.run], ["opengan[epochs=2]"])
    fitted_on = {part for part in watched.asked if part[0] != "test"}
    assert fitted_on == {("train", "known"), ("val", "known"), ("val", "negative")}
    assert found.values("auroc", group="far-b")["value"].tolist()


def test_a_preset_leaves_out_what_arrays_do_not_give() -> None:
    found = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "preset:openood")
    left = {"odin", "mdsens", "gram", "rankfeat", "gradnorm", "react", "vim", "dice", "ash"}
    assert left.isdisjoint(found.detectors)
    kept = {"msp", "knn", "she", "klm", "openmax[distance=euclidean]", "opengan", "rmds"}
    assert kept <= set(found.detectors)
    assert {note.split(" is left out")[0].rpartition(" ")[2] for note in found.about.notes} == left
    with raises(DataError, where="fake-0", naming="gram"):
        evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "gram")


def test_a_sweep_fits_once_for_values_that_fitting_does_not_read() -> None:
    fits: list[float] = []

    @dataclass(frozen=True)
    class Shifted:
        scale: float = 1.0
        offset: float = 0.0

        def fit(self, data: Arrays, head: object) -> float:
            fits.append(self.scale)
            return self.scale

        def score(self, state: float, data: Arrays) -> Array:
            assert state == self.scale
            return np.asarray(data["logits"]).max(axis=1) * state + self.offset

    method = detector_spec(
        Shifted,
        fit_on="train",
        fit_parameters=("scale",),
        sweep={"scale": (1.0, -1.0), "offset": (0.0, 1.0, 2.0)},
    )
    chosen = configure(method, {}, label="shifted")
    evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], [chosen], sweep=True)
    assert fits == [1.0, -1.0, 1.0]  # two for six candidates, and the one that was chosen


def test_a_benchmark_without_training_images_says_what_cannot_be_fitted() -> None:
    manifest = fake_manifest([("known", "id", "test", 20), ("far-a", "far", "test", 20)])
    with raises(DataError, where="made", naming="knn"):
        evaluate_runs(manifest, [fake_run(manifest)], "knn")


NEAR = "beagle boxer.n.04 robin.n.02 sparrow convertible.n.01 limousine trout.n.02 salmon.n.01"
NEGATIVE = "poodle jeep daisy.n.01 orchid tulip fig.n.04 pineapple.n.02 strawberry.n.01"


def mapped_manifest() -> Manifest:
    """A benchmark with OOD validation classes that begin with a dog and a car, as test classes are."""
    groups = [("known", "id", split, 100) for split in ("train", "val", "test")]
    manifest = fake_manifest(
        [*groups, ("negative", "external", "val", 300), ("near-a", "near", "test", 300)], classes=8
    )
    names = {"near-a": NEAR.split(), "negative": NEGATIVE.split()}
    wnids = [
        [load().find(names[group][int(class_id.rpartition("-")[2])])] if group in names else None
        for group, class_id in zip(
            *(manifest.classes[c].to_pylist() for c in ("group", "class_id")), strict=True
        )
    ]
    column = manifest.classes.column_names.index("wnids")
    field = manifest.classes.schema.field("wnids")
    return replace(manifest, classes=manifest.classes.set_column(column, field, pa.array(wnids, field.type)))


def test_a_sweep_may_leave_out_classes_in_subtrees_of_test_classes(tmp_path: Path) -> None:
    from loaders.harness import compare

    manifest = mapped_manifest()
    run = fake_run(manifest)
    found = evaluate_runs(manifest, [run], "energy", sweep="disjoint subtrees")
    negative = run.group("val", "negative")
    kept = [name[-2:] not in ("-0", "-1") for name in negative.table["class_id"].to_pylist()]
    known = np.asarray(run.group("val", "known").arrays["logits"], float)
    logits = np.concatenate([known, np.asarray(negative.arrays["logits"], float)[kept]])
    truth = np.arange(len(logits)) < len(known)
    for row in found.sweeps.to_pylist():
        temperature = json.loads(row["params"])["T"]
        expected = roc_auc_score(truth, temperature * logsumexp(logits / temperature, axis=1))
        assert row["auroc"] == pytest.approx(expected, abs=1e-4)
    facts = found.about.detector("energy", 0)
    assert facts.chosen_on == "auroc of known/val against negative/val in disjoint subtrees"
    assert any("6 of the 8 OOD validation classes" in note for note in found.about.notes)
    assert found.about.command.split()[-2:] == ["--sweep", "--disjoint"]
    (table,) = compare(found, bootstrap=0).sweeps
    assert facts.chosen_on in table.notes[0]
    found.write(tmp_path)
    assert not [d for d in check_results(tmp_path, benchmark=manifest).differences if d.table == "sweeps"]


def test_a_sweep_without_disjoint_classes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with raises(DataError, where="made", naming=(0, 4)):
        evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "energy", sweep="disjoint subtrees")
    with raises(UnknownNameError, where="sweep", near="disjoint subtrees"):
        evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "energy", sweep="disjoint subtree")
    words = "run --benchmark digits --model demo:digits --disjoint --json"
    assert run(app, words.split(), "unknown-eval") == 2
    assert json.loads(capsys.readouterr().out)["error"]["where"] == "--disjoint"
