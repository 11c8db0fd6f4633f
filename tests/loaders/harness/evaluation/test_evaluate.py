"""Evaluation of models that were never run: every row against the metric called by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.detectors import detector_spec, get_detector
from loaders.harness.detectors.class_means import Mahalanobis
from loaders.harness.detectors.neighbours import KNN
from loaders.harness.detectors.registry import configure
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.extraction.outputs import GroupOutputs, ModelRun
from loaders.harness.models.class_map import ClassMap
from loaders.harness.results.metadata import MetricOptions
from loaders.harness.results.metric_rows import MEAN, POOLED
from loaders.harness.results.results import Results
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, Reading, fake_manifest, fake_run
from tests.loaders.harness.long_tables import long_predictions
from tests.raising import raises
from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.metrics import (
    ScoreSet,
    aurc,
    aurc_unknown,
    auroc,
    auroc_per_class,
    bootstrap,
    ccr_at_fpr,
    fpr95_id_positive,
    gamma,
    get_metric,
    nearness_trend,
    oscr,
    pool,
)


@pytest.fixture(scope="module")
def open_set() -> Results:
    return evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], ["msp", "energy", "knn[k=10]"])


def scores(found: Results, group: str, detector: str = "msp", run: int = 0) -> Array:
    rows = np.flatnonzero(np.array(found.scores["group"].to_pylist()) == group)
    return found.confidences(detector, run)[rows]


def correct(found: Results, group: str = "known", run: int = 0) -> Array:
    table = found.predicted(run)
    table = table.filter(pc.equal(table["group"], group))
    return np.asarray(table["prediction"].to_numpy() == table["label"].to_numpy())


def value(found: Results, metric: str, group: str, role: str | None = None, detector: str = "msp") -> float:
    (one,) = found.values(metric, group=group, role=role, detector=detector)["value"].tolist()
    return one


@pytest.mark.parametrize("group", ["near-a", "far-a", "far-b", "negative"])
def test_each_set_against_all_id(open_set: Results, group: str) -> None:
    inside, outside, right = scores(open_set, "known"), scores(open_set, group), correct(open_set)
    assert value(open_set, "auroc", group) == auroc(inside, outside)
    assert value(open_set, "fpr95_id_positive", group) == fpr95_id_positive(inside, outside)
    assert value(open_set, "oscr", group) == oscr(inside, right, outside)
    assert value(open_set, "ccr_at_fpr_0.1", group) == ccr_at_fpr(inside, right, outside, fpr=0.1)
    (row,) = open_set.rows(metric="oscr", group=group, detector="msp")
    assert (row["n_id"], row["n_ood"]) == (
        200,
        len(outside),
    )  # negatives and unknowns each with their own count


def test_means_over_sets_are_unweighted(open_set: Results) -> None:
    far = [value(open_set, "auroc", group) for group in ("far-a", "far-b")]
    assert value(open_set, "auroc", MEAN, "far") == pytest.approx(np.mean(far), abs=1e-15)
    assert value(open_set, "auroc", MEAN, "near") == value(open_set, "auroc", "near-a")
    assert not open_set.values("auroc", group=MEAN, role="external")["value"].tolist()


def test_the_pool_is_id_near_and_far_and_says_so(open_set: Results) -> None:
    outside = np.concatenate([scores(open_set, group) for group in ("near-a", "far-a", "far-b")])
    inside, right = scores(open_set, "known"), correct(open_set)
    assert value(open_set, "aurc_unknown", POOLED) == aurc_unknown(inside, right, outside)
    assert open_set.about.composition.model_dump() == {
        "sets": {"known": 200, "near-a": 120, "far-a": 70, "far-b": 150},
        "n_id": 200,
        "n_ood": 340,
        "prevalence": 340 / 540,
    }
    (row,) = open_set.rows(metric="aurc_unknown", group=POOLED, detector="msp")
    assert (row["role"], row["n_id"], row["n_ood"]) == ("near+far", 200, 340)


def test_misclassification_is_measured_on_id_alone(open_set: Results) -> None:
    assert value(open_set, "aurc", POOLED, "id") == aurc(scores(open_set, "known"), correct(open_set))
    assert value(open_set, "accuracy", POOLED, "id") == correct(open_set).mean()
    assert 0.5 < correct(open_set).mean() < 1


def test_aurc_at_stated_prevalences() -> None:
    found = evaluate_runs(
        OPEN_SET, [fake_run(OPEN_SET)], "msp", options=MetricOptions(prevalences=(0.1, 0.5))
    )
    outside = np.concatenate([scores(found, group) for group in ("near-a", "far-a", "far-b")])
    for share in (0.1, 0.5):
        expected = aurc_unknown(scores(found, "known"), correct(found), outside, prevalence=share)
        assert value(found, f"aurc_unknown[prevalence={share:g}]", POOLED) == expected


def test_rows_by_class_and_by_bin_of_similarity(open_set: Results) -> None:
    inside = scores(open_set, "known")
    rows = [row for row in open_set.by_class.to_pylist() if row["detector"] == "msp"]
    near = [row for row in rows if row["group"] == "near-a"]
    expected = auroc_per_class(inside, scores(open_set, "near-a"), [f"near-a-{i % 4}" for i in range(120)])
    assert [(r["class_id"], r["n_ood"], r["auroc"]) for r in near] == [tuple(e) for e in expected]
    assert [row["similarity"] for row in near] == pytest.approx([0.6, 0.65, 0.7, 0.75])
    bins = {row["low"]: row for row in open_set.by_nearness.to_pylist() if row["detector"] == "msp"}
    assert (bins[0.2]["n_ood"], bins[0.0]["n_ood"], bins[0.0]["auroc"]) == (36 + 76, 0, None)
    assert sum(row["n_ood"] for row in bins.values()) == 340
    every = {(r["group"], r["class_id"]): r for r in rows}
    similarity = {f"{g}/{c}": r["similarity"] for (g, c), r in every.items()}
    named = [(type(expected[0]))(f"{g}/{c}", r["n_ood"], r["auroc"]) for (g, c), r in every.items()]
    trend = value(open_set, "nearness_trend", POOLED)
    assert trend == pytest.approx(nearness_trend(named, similarity))
    assert trend < -0.5  # nearer classes are harder, as made


def test_validation_confidences_of_palechor(open_set: Results) -> None:
    said = long_predictions(open_set).to_pandas()
    target = said[said.group == "known"].target_probability
    greatest = said[said.group == "negative"].max_probability
    expected = gamma(target, greatest, classes=4)
    assert value(open_set, "gamma", "negative", "external", "(model)") == expected
    probability = np.exp(-np.logaddexp.reduce(np.zeros(4)))
    assert greatest.min() >= probability - 1e-6  # 1/K at least


def test_rows_have_the_columns_of_the_contract(open_set: Results) -> None:
    row = open_set.rows(metric="auroc", group="far-a", detector="knn[k=10]")[0]
    assert (row["model"], row["run"], row["role"], row["lo"], row["hi"]) == ("fake", 0, "far", None, None)
    about = open_set.about
    assert (about.benchmark, about.version, about.images_fingerprint) == ("made", 3, "f" * 64)
    facts = about.detector("knn[k=10]", 0)
    assert (facts.runs, facts.params, facts.chosen_on) == ((0,), {"k": 10}, None)
    assert (about.model_key(facts), list(about.runs[0].transforms)) == ("fake-key-0", ["t"])
    assert open_set.scores["knn[k=10]/0"].type == "double"


def test_every_row_has_one_key(open_set: Results) -> None:
    keys = [
        tuple(r[c] for c in ("detector", "run", "group", "role", "metric"))
        for r in open_set.results.to_pylist()
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("full_spectrum", [False, True])
def test_full_spectrum_counts_shifted_id_as_id(full_spectrum: bool) -> None:
    manifest = fake_manifest(
        [
            ("known", "id", "test", 100),
            ("shifted", "csid", "test", 60),
            ("near-a", "near", "test", 50),
            ("far-a", "far", "test", 50),
        ]
    )
    found = evaluate_runs(manifest, [fake_run(manifest)], "msp")
    sets = [
        ScoreSet(group, role, scores(found, group), correct(found, group) if role in ("id", "csid") else None)
        for group, role in (("known", "id"), ("shifted", "csid"), ("near-a", "near"), ("far-a", "far"))
    ]
    suffix = "[full-spectrum]" if full_spectrum else ""
    for metric in ("auroc", "aurc_unknown", "fpr95_ood_positive"):
        counts = pool([sets[0], sets[1], sets[2]], full_spectrum=full_spectrum)
        assert value(found, metric + suffix, "near-a") == float(get_metric(metric).kernel(counts))
        counts = pool(sets, full_spectrum=full_spectrum)
        assert value(found, metric + suffix, POOLED, "near+far") == float(get_metric(metric).kernel(counts))
    counts = pool(sets[:2], full_spectrum=full_spectrum)
    assert value(found, "accuracy" + suffix, POOLED, "id") == float(get_metric("accuracy").kernel(counts))
    assert value(found, "accuracy", "shifted", "csid") == correct(found, "shifted").mean()
    assert found.about.composition.n_id == 100


def test_intervals_are_those_of_the_bootstrap() -> None:
    options = MetricOptions(replicates=50, seed=4)
    found = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp", options=options)
    inside = ScoreSet("known", "id", scores(found, "known"), correct(found))
    far = [ScoreSet(group, "far", scores(found, group)) for group in ("far-a", "far-b")]
    alone = [bootstrap([inside, one], ["auroc"], replicates=50, seed=4)["auroc"] for one in far]
    (row,) = found.rows(metric="auroc", group="far-b", detector="msp")
    assert (row["value"], row["lo"], row["hi"]) == tuple(alone[1])
    (mean,) = found.rows(metric="auroc", group=MEAN, role="far", detector="msp")
    assert mean["lo"] < mean["value"] < mean["hi"]
    assert mean["hi"] - mean["lo"] < max(one.hi - one.lo for one in alone)
    (pooled,) = found.rows(metric="aurc_unknown", group=POOLED, detector="msp")
    near = ScoreSet("near-a", "near", scores(found, "near-a"))
    whole = bootstrap([inside, near, *far], ["aurc_unknown"], replicates=50, seed=4)["aurc_unknown"]
    assert (pooled["lo"], pooled["hi"]) == (whole.lo, whole.hi)


def test_several_runs_have_rows_of_their_own_and_an_ensemble_predicts_together() -> None:
    runs = [fake_run(OPEN_SET, seed) for seed in range(3)]
    found = evaluate_runs(OPEN_SET, runs, ["msp", "ensemble"])
    assert found.detectors == ("msp", "ensemble")
    each = found.values("accuracy", group=POOLED, role="id", detector="msp")["value"].tolist()
    assert each == [correct(found, run=run).mean() for run in range(3)]
    assert len(set(each)) > 1
    (joint,) = found.rows(metric="accuracy", group=POOLED, role="id", detector="ensemble")
    logits = [run.group("test", "known").arrays["logits"][:].astype(float) for run in runs]
    mean = np.mean([np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in logits], axis=0)
    labels = OPEN_SET.images("test", "known")["label"].to_numpy()
    assert joint["value"] == (mean.argmax(axis=1) == labels).mean()
    assert joint["value"] > max(each)
    assert (joint["run"], joint["model"]) == (0, "fake")
    expected = np.log(mean.max(axis=1))
    np.testing.assert_allclose(scores(found, "known", "ensemble"), expected, rtol=1e-5, atol=1e-7)
    assert found.about.detector("ensemble", 0).runs == (0, 1, 2)


def test_one_model_is_no_ensemble() -> None:
    found = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], ["msp", "ensemble"])
    assert found.detectors == ("msp",)
    assert found.about.notes == ("fake: left out, as one run is not an ensemble: ensemble",)
    with pytest.raises(DataError):
        evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "ensemble")


def test_models_given_twice_or_not_at_all_are_refused() -> None:
    with raises(DataError, where="made"):
        evaluate_runs(OPEN_SET, [fake_run(OPEN_SET), fake_run(OPEN_SET)], "msp")
    with raises(DataError, where="made"):
        evaluate_runs(OPEN_SET, [], "msp")


def test_networks_that_saw_different_images_are_refused() -> None:
    shorter = fake_manifest([("known", "id", "test", 199), *[("near-a", "near", "test", 120)]])
    longer = fake_manifest([("known", "id", "test", 200), *[("near-a", "near", "test", 120)]])
    with pytest.raises(DataError) as refused:
        evaluate_runs(longer, [fake_run(longer, 0), fake_run(shorter, 1)], "ensemble")
    assert refused.value.where == "fake-1"


def test_rows_do_not_depend_on_the_order_of_images() -> None:
    run = fake_run(OPEN_SET)

    def read(split: str, group: str, needs: frozenset[str]) -> GroupOutputs:
        seen = run.group(split, group, needs)
        order = np.random.default_rng(7).permutation(seen.arrays.n)
        arrays = Arrays({name: view[order] for name, view in seen.arrays.items()})
        return GroupOutputs(seen.table.take(order), arrays, transform_key="t")

    options = MetricOptions(replicates=20)
    plain = evaluate_runs(OPEN_SET, [run], "msp", options=options)
    shuffled = evaluate_runs(
        OPEN_SET, [ModelRun("fake", "fake-key-0", Reading(read))], "msp", options=options
    )
    for a, b in zip(plain.results.to_pylist(), shuffled.results.to_pylist(), strict=True):
        np.testing.assert_equal(a, b)


@dataclass(frozen=True)
class Spoilt:
    """NaN where the logits are those of a far image."""

    needs = ("logits",)

    def score(self, state: None, data: Arrays) -> Array:
        """Return NaN for unsure images."""
        top = np.asarray(data["logits"]).max(axis=1)
        return np.where(top < 0.3, np.nan, top)


def test_nan_is_refused_by_the_detectors_name_and_the_set() -> None:
    spoilt = configure(detector_spec(Spoilt, needs=("logits",)), {}, label="spoilt")
    with raises(DataError, where="'spoilt' on near-a"):
        evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], [spoilt])


def test_id_images_without_labels_have_no_accuracy_and_count_as_id() -> None:
    """Whether an image counts as ID is its role, never its label."""
    manifest = fake_manifest([("known", "id", "test", 50), ("far-a", "far", "test", 50)])
    run = fake_run(manifest)

    def read(split: str, group: str, needs: frozenset[str]) -> GroupOutputs:
        seen = run.group(split, group, needs)
        column = seen.table.schema.get_field_index("label")
        blank = seen.table.set_column(
            column, seen.table.schema.field("label"), np.full(50, -1, np.int32)[None]
        )
        return GroupOutputs(blank, seen.arrays)

    found = evaluate_runs(manifest, [ModelRun("blank", "b", Reading(read))], "msp")
    assert not found.rows(metric="accuracy")
    assert not found.rows(metric="aurc_unknown")
    assert value(found, "auroc", "far-a") == auroc(scores(found, "known"), scores(found, "far-a"))
    assert found.rows(metric="aurc_original", group=POOLED)


def test_a_model_without_logits_is_scored_by_its_features() -> None:
    run = fake_run(OPEN_SET)

    def read(split: str, group: str, needs: frozenset[str]) -> GroupOutputs:
        seen = run.group(split, group, needs)
        return GroupOutputs(seen.table, Arrays({n: v for n, v in seen.arrays.items() if n != "logits"}))

    found = evaluate_runs(OPEN_SET, [ModelRun("features", "f", Reading(read))], "knn[k=5]")
    assert found.predicted()["prediction"].null_count == found.predictions.num_rows
    assert not found.rows(metric="accuracy")
    assert not found.rows(detector="(model)")
    assert value(found, "auroc", "far-a", detector="knn[k=5]") > 0.5


@pytest.mark.parametrize(("mode", "background"), [("columns", None), ("full", None), ("columns", 1)])
def test_predictions_follow_the_class_map(mode: Any, background: int | None) -> None:
    manifest = fake_manifest([("known", "id", "test", 6), ("far-a", "far", "test", 2)], classes=2)
    class_map = ClassMap((3, 0), 4, mode, background)
    rng = np.random.default_rng(0)
    whole = {"known": rng.normal(0, 2, (6, 4)), "far-a": rng.normal(0, 2, (2, 4))}
    groups = {
        ("test", g): GroupOutputs(
            manifest.images("test", g), class_map.arrays(Arrays.of(logits=z)), class_map
        )
        for g, z in whole.items()
    }
    found = evaluate_runs(manifest, [ModelRun.of("m", groups)], "msp")
    said = long_predictions(found).to_pandas()
    z = np.concatenate(list(whole.values()))
    seen = list(class_map.class_columns)
    column = np.array(seen)[z[:, seen].argmax(axis=1)]
    assert said.prediction.tolist() == [{3: 0, 0: 1}.get(c, -1) for c in column.tolist()]
    softmax = list(class_map.softmax_columns)
    p = np.exp(z) / np.exp(z[:, softmax]).sum(axis=1, keepdims=True)
    labels = manifest.images("test", "known")["label"].to_numpy()
    np.testing.assert_allclose(
        said.target_probability[:6], p[np.arange(6), np.array([3, 0])[labels]], rtol=1e-6
    )
    np.testing.assert_allclose(said.max_probability, p[:, [3, 0]].max(axis=1), rtol=1e-6)
    (run,) = found.about.runs
    assert run.known_classes == 2
    assert run.other_columns == (mode == "full" or background is not None)
    assert run.class_map is not None
    assert run.class_map.restrict == mode


def test_a_label_beyond_the_models_classes_is_refused() -> None:
    manifest = fake_manifest([("known", "id", "test", 8), ("far-a", "far", "test", 8)], classes=4)
    groups = {
        ("test", g): GroupOutputs(manifest.images("test", g), Arrays.of(logits=np.zeros((8, 3))))
        for g in ("known", "far-a")
    }
    with raises(DataError, where="small", naming="3"):
        evaluate_runs(manifest, [ModelRun.of("small", groups)], "msp")


def largest(data: Arrays, *, factor: float = 1.0) -> Array:
    """Return the maximum logit."""
    return np.asarray(data["logits"]).max(axis=1) * factor


def test_detectors_may_be_given_as_objects() -> None:
    chosen = [get_detector("energy", T=2), "preset:palechor", KNN(k=7), Mahalanobis, largest]
    found = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], chosen)
    labels = ("energy[T=2]", "msp_float32", "msp", "knn[k=7]", "mahalanobis", "largest")
    assert found.detectors == labels
    assert found.about.detector("knn[k=7]", 0).params == {"k": 7}
    plain = evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "mls")
    assert value(found, "auroc", "far-a", detector="largest") == value(
        plain, "auroc", "far-a", detector="mls"
    )


@dataclass(frozen=True)
class Contrary:
    """A detector that predicts the least likely class."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return the least logit."""
        return np.asarray(data["logits"]).min(axis=1)

    def predict(self, state: None, data: Arrays) -> Arrays:
        """Return the logits with their signs changed."""
        return data.replace(logits=-np.asarray(data["logits"]))


def test_a_detector_that_changes_predictions_is_measured_by_its_own() -> None:
    run = fake_run(OPEN_SET)
    found = evaluate_runs(OPEN_SET, [run], ["msp", configure(detector_spec(Contrary), {}, label="contrary")])
    group = run.group("test", "known")
    logits, labels = np.asarray(group.arrays["logits"]), group.labels
    assert value(found, "accuracy", POOLED, "id") == (logits.argmax(axis=1) == labels).mean()
    (own,) = found.rows(metric="accuracy", group=POOLED, role="id", detector="contrary")
    assert own["value"] == (logits.argmin(axis=1) == labels).mean()


def test_two_detectors_of_one_name_are_refused() -> None:
    with raises(SplitsError, naming="largest"):
        evaluate_runs(
            OPEN_SET, [fake_run(OPEN_SET)], [largest, configure(detector_spec(Spoilt), {}, label="largest")]
        )
