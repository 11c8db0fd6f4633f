"""Comparisons: ranks, paired significance, draws, improvement, and what is never compared in silence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, nct, norm, rankdata
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from loaders.harness import compare, evaluate_arrays
from loaders.harness.comparison.entries import draws_of
from loaders.harness.comparison.flattery import flattery_table
from loaders.harness.comparison.rank_tests import holm
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.report.plots import plot_data
from loaders.harness.results.metric_rows import MEAN, POOLED
from loaders.harness.results.results import Results
from loaders.harness.results.table import tables_as_text
from loaders.harness.results.tables import tables
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from tests.loaders.harness.long_tables import long_scores
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.metrics import ScoreSet, bootstrap_indices, interval
from wordnet_splits.metrics.draws import SetDraws

SETS = [
    ("cifar-40", "id", "test", 80),
    ("cifar-60", "near", "test", 60),
    ("lsun", "far", "test", 40),
    ("svhn", "far", "test", 50),
]


def results(
    name: str = "unknown-cifar-near4000",
    detectors: str = "mcp,energy,mls",
    *,
    seeds: Any = (0, 1),
    model: str = "fake",
    sets: Any = SETS,
    **options: Any,
) -> Results:
    manifest = fake_manifest(sets, name=name)
    return evaluate_runs(manifest, [fake_run(manifest, s, model=model) for s in seeds], detectors, **options)


def test_means_spreads_and_ranks_are_those_of_numpy_and_scipy() -> None:
    held = results()
    found = compare(held, metric="auroc", on="svhn", bootstrap=0)
    by_name = {row["detector"]: row for row in found.rows()}
    means = []
    for detector in held.detectors:
        runs = held.values("auroc", group="svhn", role="far", detector=detector)["value"].tolist()
        assert by_name[detector]["mean"] == pytest.approx(np.mean(runs))
        assert by_name[detector]["sd"] == pytest.approx(np.std(runs, ddof=1))
        means.append(np.mean(runs))
    ranks = rankdata([-value for value in means])
    assert [by_name[d]["rank"] for d in held.detectors] == ranks.tolist()
    assert [row["rank"] for row in found.rows()] == sorted(ranks)
    assert all(row["lo"] is None and row["p"] is None for row in found.rows())


def test_intervals_and_p_are_of_the_same_images_for_every_detector() -> None:
    """Rebuilt image by image from the stored scores, with scikit-learn's AUROC."""
    held = results(detectors="mcp,mls")
    found = compare(held, metric="auroc", on="svhn", bootstrap=40, seed=3)
    scores = long_scores(held).to_pandas().sort_values("image_id")

    def replicate(detector: str, run: int, number: int) -> float:
        sides = []
        for group in ("cifar-40", "svhn"):
            chosen = (scores.detector == detector) & (scores.run == run) & (scores.group == group)
            values = scores[chosen].confidence.to_numpy()
            sides.append(values[bootstrap_indices(3, group, number, len(values))])
        return float(roc_auc_score([1] * len(sides[0]) + [0] * len(sides[1]), np.concatenate(sides)))

    drawn = {
        d: np.array([np.mean([replicate(d, run, r) for run in (0, 1)]) for r in range(40)])
        for d in ("mcp", "mls")
    }
    for row in found.rows():
        values = drawn[row["detector"]]
        assert (row["lo"], row["hi"]) == pytest.approx(tuple(np.quantile(values, (0.025, 0.975))))
    best, other = (row["detector"] for row in found.rows())
    (pair,) = found.rankings[0].pairs
    difference = drawn[best] - drawn[other]
    error = np.std(difference, ddof=1)
    assert pair.p == pytest.approx(2 * norm.sf(pair.better / error))
    beyond = np.abs(difference - difference.mean()) >= pair.better
    assert pair.p_adjusted == (1 + beyond.sum()) / 41
    assert (found.rows()[1]["p"], found.rows()[1]["p_adjusted"]) == (pair.p, pair.p_adjusted)


def test_two_names_of_one_ranking_cannot_be_told_apart() -> None:
    """mcp and max-softmax at a fixed temperature of 1 rank alike: the difference is 0 in every replicate."""
    held = results(detectors="mls,energy")
    scores = held.scores.to_pandas()
    for run in (0, 1):
        scores[f"energy/{run}"] = 2 * scores[f"mls/{run}"]
    rows = held.results.to_pandas()
    rows.loc[rows.detector == "energy", "value"] = rows.value[rows.detector == "mls"].to_numpy()
    tables = {"scores": scores, "results": rows}
    schemas = {name: getattr(held, name).schema for name in tables}
    alike = replace(held, **{n: pa.Table.from_pandas(t, schema=schemas[n]) for n, t in tables.items()})
    found = compare(alike, metric="auroc", on="near", bootstrap=30)
    (pair,) = found.rankings[0].pairs
    assert (pair.lo, pair.hi, pair.p, pair.p_adjusted, pair.above) == (0, 0, 1, 1, None)


def test_over_classes_the_images_of_drawn_classes_count_together() -> None:
    """Rebuilt from the draws of classes, image by image, with scikit-learn's weighted AUROC."""
    held = results(detectors="mcp,mls", seeds=(0,))
    found = compare(held, metric="auroc", on="svhn", over="classes", bootstrap=50, seed=2)
    scores = held.scores.to_pandas().sort_values("image_id")
    inside, outside = (scores[scores.group == group] for group in ("cifar-40", "svhn"))
    codes = np.unique(outside.class_id, return_inverse=True)[1]
    parts = [
        ScoreSet("cifar-40", "id", inside["mcp/0"].to_numpy(), None, inside.label.to_numpy()),
        ScoreSet("svhn", "far", outside["mcp/0"].to_numpy(), None, codes),
    ]
    weights = np.concatenate([SetDraws.from_set(part, 50, 2).weights(range(50)) for part in parts], axis=1)
    ranking, sizes = found.rankings[0], np.bincount(codes)
    k = sizes.sum() ** 2 / np.sum(sizes**2)  # a little below 4: the classes have unequal sizes
    assert 3.5 < k < 4
    for row, drawn in zip(ranking.entries, ranking.replicates, strict=True):
        confidence = np.concatenate([part[f"{row.detector}/0"] for part in (inside, outside)])
        is_id = np.arange(len(confidence)) < len(inside)
        by_hand = [roc_auc_score(is_id, confidence, sample_weight=times) for times in weights]
        assert drawn == pytest.approx(by_hand)
        half = student.ppf(0.975, k - 1) * np.sqrt(k / (k - 1)) * np.std(by_hand, ddof=1)
        half /= 2 * np.sqrt(row.mean * (1 - row.mean))
        angles = np.arcsin(np.sqrt(row.mean)) + np.array([-half, half])
        assert (row.lo, row.hi) == pytest.approx(tuple(np.sin(np.clip(angles, 0, np.pi / 2)) ** 2))
    (pair,) = ranking.pairs
    t = pair.better / np.sqrt(k / (k - 1)) / np.std(ranking.replicates[0] - ranking.replicates[1], ddof=1)
    assert pair.p == pytest.approx(2 * student.sf(t, k - 1))
    assert pair.above == pytest.approx(norm.cdf(t))
    bounds = norm.ppf([pair.above_lo, pair.above_hi])
    assert nct.cdf(t, k - 1, bounds) == pytest.approx([0.975, 0.025], rel=1e-4)
    assert (ranking.over, ranking.clusters.sets["svhn"].number) == ("classes", 4)


REAL = Path(__file__).resolve().parents[4] / "manifests" / "results"


def test_fewer_pairs_differ_over_classes_and_subtrees_than_over_images() -> None:
    of_levels = [
        compare(REAL / "rungs-cifar100-all", detectors=["msp", "knn", "energy", "vim"], metric="auroc",
                on="near", over=over, bootstrap=200)
        for over in ("images", "classes", "subtrees")
    ]  # fmt: skip
    different = [sum(p.p_adjusted <= 0.05 for p in found.rankings[0].pairs) for found in of_levels]
    assert different[0] > different[1] >= different[2]
    assert len({tuple(row["mean"] for row in found.rows()) for found in of_levels}) == 1
    for found in of_levels:
        (ranking,) = found.rankings
        assert max(len(line) for line in tables_as_text(found.tables(), found.notes, 100).splitlines()) <= 100
        assert sum(entry.rank_lo == 1 for entry in ranking.entries) >= 1
        for entry in ranking.entries:
            better = sum(p.b == entry.name and p.p_adjusted <= 0.05 for p in ranking.pairs)
            worse = sum(p.a == entry.name and p.p_adjusted <= 0.05 for p in ranking.pairs)
            assert (entry.rank_lo, entry.rank_hi) == (1 + better, 4 - worse)
    cut = compare(
        REAL / "rungs-cifar100-all", detectors=["msp"], on="near", over="subtrees", cut=1, bootstrap=2
    )
    assert cut.rankings[0].clusters.sets != of_levels[2].rankings[0].clusters.sets


def test_noise_is_named_and_alone_has_no_intervals() -> None:
    folder = REAL / "unknown-cifar-tinyval-resnet20-short"
    options = {"detectors": ["mcp", "knn"], "metric": "auroc", "over": "classes", "bootstrap": 20}
    alone = compare(folder, on="gaussian", **options)
    assert (alone.rows()[0]["lo"], alone.rankings[0].pairs) == (None, ())
    for on in ("gaussian", "far"):
        assert "gaussian cannot be generalised" in str(compare(folder, on=on, **options))


def test_draws_and_improvements_are_over_classes_too() -> None:
    options = {"metric": "auroc", "on": "near", "over": "classes", "bootstrap": 20, "flattery": "all"}
    found = compare([draw(1), draw(2)], **options)
    assert [ranking.over for ranking in found.rankings] == ["classes", "classes"]
    assert len({cells[0] for cells in flattery_table(found.flattery).cells}) == 2
    held = results()
    for over in ("images", "classes"):
        found = compare(held, over=over, bootstrap=30)
        (ranking,) = found.rankings
        base, other = (next(r for r, e in zip(ranking.replicates, ranking.entries, strict=True)
                            if e.detector == detector) for detector in ("mcp", "mls"))  # fmt: skip
        (gain,) = (one for one in found.improvements if one.detector == "mls")
        percents = 100 * (base - other) / base
        expected = interval(gain.percent, percents, ranking.design)
        assert (gain.lo, gain.hi) == pytest.approx((expected.lo, expected.hi))


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"over": "species"}, "--over"),
        ({"over": "classes", "cut": 2}, "--cut"),
        ({"over": "subtrees", "cut": 0}, "--cut"),
        ({"over": "classes", "bootstrap": 0}, "--over"),
        ({"over": "images", "bootstrap": 1}, "--bootstrap"),
        ({"over": "classes", "on": "id", "metric": "aurc"}, "--over"),
        ({"over": "classes", "on": "id", "metric": "ece"}, "--over"),
    ],
)
def test_levels_that_cannot_be_drawn_are_refused(options: Any, where: str) -> None:
    with raises((DataError, UnknownNameError), where=where):
        compare(results(), **{"bootstrap": 10, **options})


def test_subtrees_need_the_benchmark_and_scores() -> None:
    with raises(DataError, naming="unknown-cifar-near4000"):  # other classes than the made results
        compare(results(), over="subtrees", bootstrap=10)
    with raises(DataError, where="unknown-cifar-tinyval"):
        compare(REAL / "unknown-cifar-tinyval-methods-knn", over="classes", bootstrap=10)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_and_keeps_the_order(values: list[float]) -> None:
    corrected = holm(values)
    assert all(p <= q <= 1 for p, q in zip(values, corrected, strict=True))
    assert max(corrected) >= min(1.0, len(values) * min(values))
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


def test_holm_by_hand() -> None:
    # sorted .01 x 3, .02 x 2 -> .04, .5 x 1
    assert holm([0.5, 0.01, 0.02]) == [0.5, 0.03, 0.04]


def test_near_and_far_means_and_the_pool_are_places() -> None:
    held = results()
    for on, metric, group, role in (
        ("near", "auroc", MEAN, "near"),
        ("far", "fpr95_id_positive", MEAN, "far"),
        ("pooled", "aurc_unknown", POOLED, "near+far"),
        ("id", "aurc", POOLED, "id"),
    ):
        found = compare(held, metric=metric, on=on, bootstrap=20)
        for row in found.rows():
            expected = np.mean(
                held.values(metric, group=group, role=role, detector=row["detector"])["value"].tolist()
            )
            assert row["mean"] == pytest.approx(expected)
            assert row["lo"] <= row["hi"]
    with raises(UnknownNameError, where="--on", naming=("svnh", "mean"), near="svhn"):
        compare(held, on="svnh")


def test_the_paper_s_primary_metric_is_the_default() -> None:
    found = compare(results(), bootstrap=0)
    assert (found.metric, found.on) == ("aurc_unknown", "pooled")
    found = compare(results("openood-cifar10"), bootstrap=0)
    assert (found.metric, found.on) == ("auroc", "near")


def test_runs_evaluated_apart_are_runs_of_one_model_again() -> None:
    together = compare(results(seeds=(0, 1, 2)), bootstrap=10)
    apart = compare([results(seeds=(0,)), results(seeds=(1, 2))], bootstrap=10)
    assert together.rows() == apart.rows()
    assert {row["n"] for row in apart.rows()} == {3}


def test_the_order_of_rows_in_a_folder_plays_no_part() -> None:
    held = results()
    order = np.random.default_rng(0).permutation(held.scores.num_rows)
    shuffled = replace(held, scores=held.scores.take(order), predictions=held.predictions.take(order))
    assert (
        compare(held, bootstrap=15).as_dict()["pairs"] == compare(shuffled, bootstrap=15).as_dict()["pairs"]
    )


def other_images() -> Results:
    sets = [(g, role, s, n - (g == "lsun")) for g, role, s, n in SETS]
    return results(sets=sets, seeds=(7,), model="other")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (list, ()),
        (lambda: [results(), results("digits")], ("unknown-cifar-near4000", "digits")),
        (lambda: [results(), results()], ()),
        (lambda: [results(), other_images()], ()),
    ],
)
def test_what_cannot_be_compared_is_refused(given: Any, named: object) -> None:
    with raises(DataError, naming=named):
        compare(given(), bootstrap=5)


def test_sets_that_both_hold_whole_can_still_be_compared() -> None:
    found = compare([results(), other_images()], on="svhn", metric="auroc", bootstrap=5)
    assert {row["model"] for row in found.rows()} == {"fake", "other"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 2),
        ("images_fingerprint", "e" * 64),
        ("evaluation_fingerprint", "e" * 64),
        ("sources_fingerprint", "e" * 64),
    ],
)
def test_other_versions_and_fingerprints_are_refused(field: str, value: Any) -> None:
    one, two = results(), results(seeds=(5,), model="other")
    changed = replace(two, about=two.about.model_copy(update={field: value}))
    with raises(DataError, naming="unknown-cifar-near4000"):
        compare([one, changed])


def test_other_transforms_are_said() -> None:
    one, two = results(), results(seeds=(5,), model="other")
    runs = tuple(run.model_copy(update={"transforms": {"u": "resize 7"}}) for run in two.about.runs)
    changed = replace(two, about=two.about.model_copy(update={"runs": runs}))
    (note,) = compare([one, changed], bootstrap=0).notes
    assert "different transforms" in note
    assert "other (other-5): resize 7" in note


def test_networks_of_one_class_are_told_apart_by_the_names_that_the_user_gave() -> None:
    one, two = results(model="one"), results(seeds=(5,), model="two")

    def through(held: Results, words: str) -> Results:
        facts = {"name": "Sequential", "transforms": {words: words}}
        runs = tuple(run.model_copy(update=facts) for run in held.about.runs)
        return replace(held, about=held.about.model_copy(update={"runs": runs}))

    (note,) = compare([through(one, "resize 7"), through(two, "resize 8")], bootstrap=0).notes
    assert "(one (Sequential): resize 7; two (Sequential): resize 8)" in note


def test_a_network_under_two_names_is_said() -> None:
    one, two = results(model="one"), results(model="two")
    assert compare([one, two], bootstrap=0).notes == ()
    of_one = zip(one.about.runs, two.about.runs, strict=True)
    runs = tuple(run.model_copy(update={"model_key": first.model_key}) for first, run in of_one)
    again = replace(two, about=two.about.model_copy(update={"runs": runs}))
    (note,) = compare([one, again], bootstrap=0).notes
    assert note == "one, two are the same network; it is ranked 2 times"


def draw(number: int, detectors: str = "mcp,energy,mls,entropy") -> Results:
    name = f"unknown-cifar@seed={number}"
    held = results("unknown-cifar", detectors, model=f"{name}/net", seeds=(number,))
    return replace(held, about=held.about.model_copy(update={"benchmark": name}))


def test_draws_that_were_evaluated_otherwise_are_refused() -> None:
    one, two = draw(1), draw(2)
    other = replace(two, about=two.about.model_copy(update={"evaluation_fingerprint": "e" * 64}))
    with pytest.raises(DataError):
        compare([one, other], metric="auroc", on="near", bootstrap=0)


def test_draws_are_ranked_apart_and_agree_as_kendall_says() -> None:
    draws = [draw(number) for number in (1, 2, 3)]
    found = compare(draws, metric="auroc", on="near", bootstrap=0)
    assert found.draws is not None
    assert {one.model for one in found.draws.entries} == {"net"}
    values = {
        held.about.benchmark: [
            held.values("auroc", group=MEAN, role="near", detector=d)["value"].tolist()[0]
            for d in held.detectors
        ]
        for held in draws
    }
    for one in found.draws.agreements:
        assert one.tau == pytest.approx(kendalltau(values[one.a], values[one.b]).statistic)
    ranks = np.array([rankdata([-v for v in row]) for row in values.values()])
    by_name = {one.detector: one for one in found.draws.entries}
    for n, detector in enumerate(draws[0].detectors):
        assert by_name[detector].mean_rank == pytest.approx(ranks[:, n].mean())
        assert (by_name[detector].best_rank, by_name[detector].worst_rank) == (
            ranks[:, n].min(),
            ranks[:, n].max(),
        )
    assert "no significance across them" in str(found)
    assert "Over 3 draws" in str(found)


def test_order_is_compared_with_the_paper_s_where_its_pool_is_whole() -> None:
    held = results(detectors="mcp,ensemble,energy")
    found = compare(held, bootstrap=0)
    (one,) = found.agreements
    ours = {row["detector"]: row["mean"] for row in found.rows()}
    assert one.n == 2
    assert one.tau == (1 if ours["mcp"] > ours["ensemble"] else -1)  # 773.15 and 731.71 in table 6
    elsewhere = results("unknown-cifar", "mcp,ensemble")
    assert compare(elsewhere, bootstrap=0).agreements == ()


def test_improvement_over_mcp_is_kim_s_figure_5() -> None:
    held = results()
    found = compare(held, bootstrap=25)
    aurc = {row["detector"]: row["mean"] for row in found.rows()}
    for one in found.improvements:
        expected = 100 * (aurc["mcp"] - aurc[one.detector]) / aurc["mcp"]
        assert one.percent == pytest.approx(expected)
        assert one.baseline == f"{one.model} mcp"
        assert one.lo <= one.hi
        if one.detector == "mcp":
            assert (one.percent, one.lo, one.hi) == (0, 0, 0)
    assert compare(held, metric="auroc", on="near", bootstrap=0).improvements == ()


def test_full_spectrum_stands_beside_standard() -> None:
    held = results("openood-imagenet200", sets=[*SETS, ("imagenet-r", "csid", "test", 40)])
    found = compare(held, bootstrap=0)
    assert len(found.full_spectrum) == 3 * 2
    for row in found.full_spectrum:
        full = np.mean(
            held.values("auroc[full-spectrum]", group=MEAN, role=row.role, detector=row.detector)[
                "value"
            ].tolist()
        )
        assert row.full_spectrum == pytest.approx(full)
        assert row.lost == pytest.approx(row.standard - full)
    assert compare(results(), bootstrap=0).full_spectrum == ()
    ranked = compare(held, metric="auroc[full-spectrum]", on="near", bootstrap=15)
    assert all(row["lo"] <= row["mean"] + 0.1 for row in ranked.rows())


def test_folders_are_read_and_everything_is_one_json_object(tmp_path: Path) -> None:
    held = results()
    held.write(tmp_path / "a")
    found = compare([tmp_path / "a"], bootstrap=5)
    assert found.rows() == compare(held, bootstrap=5).rows()
    assert set(json.loads(json.dumps(found.as_dict()))) == {
        "benchmark", "metric", "on", "over", "cut", "ranking", "pairs", "draws", "paper",
        "improvement", "full_spectrum", "robustness", "sweeps", "notes",
    }  # fmt: skip
    assert "<table>" in found._repr_html_()


def test_a_detector_is_found_under_its_aliases() -> None:
    held = results(detectors="mcp,energy")
    for name in ("msp", "mcp", "MSP"):
        (row,) = compare(held, detectors=[name], bootstrap=0).rows()
        assert row["detector"] == "mcp"
    both = results(detectors="mcp,msp,energy[T=2],energy")
    for name, label in (("msp", "msp"), ("ebo", "energy"), ("ebo[T=2]", "energy[T=2]")):
        assert [row["detector"] for row in compare(both, detectors=[name], bootstrap=0).rows()] == [label]
    rows = compare(both, detectors="ebo[T=2],msp", bootstrap=0).rows()
    assert {row["detector"] for row in rows} == {"energy[T=2]", "msp"}
    for unclear in ("MSP", "energy[T=3]", "ebo[", ""):
        with raises(UnknownNameError, where="--detectors"):
            compare(both, detectors=[unclear])


def test_an_absent_detector_or_value_is_one_line() -> None:
    held = results()
    with raises(UnknownNameError, where="--detectors", naming="knn"):
        compare(held, detectors=["mcp", "knn"])
    with raises(DataError, where="results 1", naming=("accuracy", "svhn")):
        compare(held, metric="accuracy", on="svhn")


def test_missing_sets_are_noted() -> None:
    manifest = fake_manifest(SETS, name="unknown-cifar")
    held = evaluate_runs(manifest, [fake_run(manifest)], "mcp", groups=["svhn"])
    (draw,) = draws_of([held])
    assert any("lsun was not scored whole (0 images)" in note for note in draw.notes)


def test_entries_that_a_draw_lacks_are_named() -> None:
    found = compare([draw(1), draw(2, "mcp,energy")], metric="auroc", on="near", bootstrap=0)
    assert found.draws is not None
    assert found.draws.left_out == ("net mls", "net entropy")
    with raises(DataError, where="unknown-cifar@seed=1, unknown-cifar@seed=2"):
        compare([draw(1), draw(2, "mcp")], metric="auroc", on="near", bootstrap=0)


def own(shift: float = 1, **more: Any) -> Results:
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 3
    logits = rng.normal(size=(30, 3)).astype(np.float32)
    logits[np.arange(30), labels] += shift
    return evaluate_arrays(
        {"id": {"logits": logits, "labels": labels, "ids": range(30)}, **more},
        "msp,energy",
        model=f"m{shift}",
    )


def test_sets_of_one_s_own_are_compared_and_id_alone_by_aurc() -> None:
    found = compare([own(1), own(2)], bootstrap=5)
    assert (found.metric, found.on) == ("aurc", "id")
    assert {row["model"] for row in found.rows()} == {"m1", "m2"}
    near = {"near:a": {"logits": np.zeros((5, 3), np.float32)}}
    found = compare(own(1, **near), bootstrap=5)
    assert (found.metric, found.on) == ("aurc_unknown", "pooled")


def test_images_of_equal_numbers_and_other_labels_are_other_images() -> None:
    one, two = own(1), own(2)
    labels = two.scores["label"].to_numpy()[::-1].copy()
    names = two.scores.schema.names
    moved = two.scores.set_column(names.index("label"), "label", pa.array(labels, pa.int32()))
    with raises(DataError, naming="id"):
        compare([one, replace(two, scores=moved)], bootstrap=0)


def test_another_baseline_is_one_that_is_there() -> None:
    held = results()
    found = compare(held, metric="fpr95_id_positive", on="far", bootstrap=0, baseline="fake energy")
    base = {row["detector"]: row["mean"] for row in found.rows()}
    for one in found.improvements:
        assert one.percent == pytest.approx(100 * (base["energy"] - base[one.detector]) / base["energy"])
        assert one.baseline == "fake energy"
    with raises(DataError, where="unknown-cifar-near4000", naming="knn"):
        compare(held, bootstrap=0, baseline="knn")


def test_a_perfect_mcp_leaves_nothing_to_improve() -> None:
    found = compare(own(30), bootstrap=0)
    assert [row["mean"] for row in found.rows()] == [0, 0]
    assert found.improvements == ()


def test_full_spectrum_values_over_different_shifted_sets_are_told_apart() -> None:
    """`groups=` leaves a shifted set out: the metric's name is the same, what it counts as ID is not."""
    sets = [*SETS, ("imagenet-r", "csid", "test", 40), ("imagenet-es", "csid", "test", 30)]
    some = [group for group, role, split, _ in sets if split == "test" and group != "imagenet-es"]
    today = results("openood-imagenet1k", sets=sets, model="a")
    of_2023 = results("openood-imagenet1k", sets=sets, model="b", groups=some)
    assert (today.shifted_sets, of_2023.shifted_sets) == (("imagenet-r", "imagenet-es"), ("imagenet-r",))
    found = compare([today, of_2023], bootstrap=0)
    assert {row.model: row.shifted for row in found.full_spectrum} == {
        "a": ("imagenet-r", "imagenet-es"),
        "b": ("imagenet-r",),
    }
    titles = [table.title for table in found.tables() if "imagenet-r" in table.title]
    assert ["imagenet-es" in title for title in titles] == [True, False]
    with raises(DataError, naming="imagenet-es"):
        compare([today, of_2023], metric="auroc[full-spectrum]", on="near", bootstrap=0)
    with raises(DataError):
        plot_data([today, of_2023], "full-spectrum")
    assert "imagenet-es" not in plot_data(of_2023, "full-spectrum").title
    (ranked,) = compare(today, metric="auroc[full-spectrum]", on="near", bootstrap=0).rankings
    assert ranked.shifted == ("imagenet-r", "imagenet-es")
    assert "imagenet-es" in tables(today)[1].title
    assert "imagenet-es" not in tables(of_2023)[1].title
