"""Replicates over classes and subtrees, against a loop that draws images one by one and ranks them again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import (
    ClusterDesign,
    ScoreSet,
    bootstrap,
    bootstrap_replicates,
    evaluate,
    interval,
    list_metrics,
    paired_replicates,
    rank_counts,
    resampling,
)
from wordnet_splits.metrics.draws import cluster_draws
from wordnet_splits.metrics.uncertainty import scarce_units

from .reference import tied_scores
from .test_uncertainty import splitmix64, state_of


def nested(seed: int = 0, levels: int | None = 6, correct: bool = True) -> list[ScoreSet]:
    """Two ID classes and two OOD sets: four classes of unequal sizes, and a single one."""
    random = np.random.default_rng(seed)
    inside, outside = tied_scores(seed, 60, 50, levels)
    flags = random.random(60) < 0.7 if correct else None
    return [
        ScoreSet("id", "id", inside, flags, random.integers(0, 2, 60)),
        ScoreSet(
            "near", "near", outside[:38], None, random.choice([7, -1, 30, 4], 38, p=[0.5, 0.2, 0.2, 0.1])
        ),
        ScoreSet("noise", "far", outside[38:], None, np.full(12, 3)),
    ]


def rows_of(part: ScoreSet, replicate: int, replicates: int, seed: int) -> list[int]:
    """The rows of a replicate as the docstring of `draws` defines them, in Python's integers."""
    codes = part.clusters.tolist()
    distinct = sorted(set(codes))
    if not part.is_id and len(distinct) > 1:
        k = len(distinct)
        words = splitmix64(state_of("clusters", seed, part.name), k * replicates)
        places = sorted(range(k * replicates), key=lambda i: words[i] >> 32)[
            replicate * k : (replicate + 1) * k
        ]
        return [row for i in places for row, code in enumerate(codes) if code == distinct[i % k]]
    words = splitmix64(state_of("bootstrap", seed, part.name, replicate), len(codes))
    rows: list[int] = []
    for code in distinct:
        members = [row for row, other in enumerate(codes) if other == code]
        drawn = words[len(rows) : len(rows) + len(members)]
        rows += [members[((word >> 32) * len(members)) >> 32] for word in drawn]
    return rows


@pytest.mark.parametrize("levels", [None, 6])
def test_every_metric_of_every_replicate_equals_that_of_the_drawn_rows(levels: int | None) -> None:
    sets = nested(levels=levels)
    drawn = bootstrap_replicates(sets, replicates=9, seed=5, paired=True)
    assert set(drawn) == set(list_metrics())
    for replicate in range(9):
        taken = [rows_of(part, replicate, 9, 5) for part in sets]
        scores = [part.confidence[rows] for part, rows in zip(sets, taken, strict=True)]
        correct = sets[0].correct[taken[0]]
        direct = evaluate(rank_counts(scores[0], np.concatenate(scores[1:]), correct=correct))
        for name, value in direct.items():
            assert drawn[name][replicate] == pytest.approx(value, abs=1e-13, nan_ok=True), name


@given(st.integers(0, 10**6), st.sampled_from([None, 3]), st.booleans())
@settings(max_examples=25)
def test_rows_sets_and_blocks_in_any_order_give_the_same_bits(seed, levels, correct) -> None:
    """Clusters too may have other numbers, if their order stays."""
    sets = nested(seed, levels, correct)
    random = np.random.default_rng(seed)
    shuffled = []
    for part in sets:
        rows = random.permutation(len(part.confidence))
        flags = None if part.correct is None else part.correct[rows]
        shuffled.append(
            ScoreSet(part.name, part.role, part.confidence[rows], flags, part.clusters[rows] * 5 + 2)
        )
    expected = bootstrap_replicates(sets, replicates=30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resampling, "BLOCK", int(random.integers(1, 3000)))
        found = bootstrap_replicates(shuffled[::-1], replicates=30)
    assert {k: v.tobytes() for k, v in found.items()} == {k: v.tobytes() for k, v in expected.items()}


@pytest.mark.parametrize("levels", [None, 6])
@pytest.mark.parametrize("threads", [1, 3])
def test_numba_and_threads_change_no_bit(monkeypatch, levels: int | None, threads: int) -> None:
    """Over images (paired or not) and over clusters, for metrics with a compiled loop and for others."""
    sets = nested(levels=levels)
    plain = [ScoreSet(p.name, p.role, p.confidence, p.correct) for p in sets]
    metrics = [[name] for name in sorted(resampling.PAIR_METRICS)] + [["auroc", "aurc_unknown"], None]
    cases = [(s, m, paired) for s in (sets, plain) for m in metrics for paired in (False, True)]

    def values() -> list[bytes]:
        drawn = [bootstrap_replicates(s, m, replicates=70, seed=3, paired=paired) for s, m, paired in cases]
        return [array.tobytes() for of_case in drawn for array in of_case.values()]

    expected = values()
    pytest.importorskip("numba")
    monkeypatch.setattr(resampling, "LARGE", 0)
    monkeypatch.setattr(resampling, "thread_count", lambda: threads)
    assert values() == expected
    monkeypatch.setattr(resampling, "numba_loops", lambda: None)
    assert values() == expected


def test_paired_replicates_are_those_of_each_entry() -> None:
    sets = nested()
    other = [ScoreSet(p.name, p.role, -(p.confidence**2), p.correct, p.clusters) for p in sets]
    together = paired_replicates([sets, other], "aurc_unknown", replicates=40, seed=2)
    for entry, values in zip([sets, other], together, strict=True):
        alone = bootstrap_replicates(entry, ["aurc_unknown"], replicates=40, seed=2, paired=True)
        assert np.array_equal(alone["aurc_unknown"], values)


@given(st.integers(2, 40), st.integers(2, 60), st.integers(0, 99))
def test_draws_of_clusters_are_balanced(replicates, clusters, seed) -> None:
    times = cluster_draws(seed, "x", replicates, clusters)
    assert (times.sum(axis=0) == replicates).all()
    assert (times.sum(axis=1) == clusters).all()


def test_bootstrap_over_clusters_is_wider_and_leaves_accuracy_to_the_images() -> None:
    sets = nested(levels=None)
    plain = [ScoreSet(p.name, p.role, p.confidence, p.correct) for p in sets]
    found, images = bootstrap(sets), bootstrap(plain)
    drawn = bootstrap_replicates(sets, ["auroc"])["auroc"]
    design = ClusterDesign.from_pools([sets[1:]])
    sizes = np.unique(sets[1].clusters, return_counts=True)[1]
    assert 3 < sum(sizes) ** 2 / sum(sizes**2) < 4
    assert design == ClusterDesign((38 / 50,), (sum(sizes) ** 2 / sum(sizes**2),))
    assert found["auroc"] == interval(images["auroc"].value, drawn, design, clip=True)
    assert found["auroc"].hi - found["auroc"].lo > images["auroc"].hi - images["auroc"].lo
    assert not any(r.lo < 0 or r.hi > 1 for name, r in found.items() if name != "e_aurc_geifman")
    by_class = bootstrap([sets[0], *plain[1:]])
    assert (
        found["accuracy"] == by_class["accuracy"]
    )  # a percentile interval: no unknown class has a part in it
    only_noise = bootstrap([sets[0], sets[2]], ["auroc"])["auroc"]
    assert np.isnan([only_noise.lo, only_noise.hi]).all()


@pytest.mark.parametrize(
    ("shares", "clusters", "factor", "df"),
    [
        ((1.0,), (5,), np.sqrt(5 / 4), 4),
        ((0.5, 0.5), (6, 6), np.sqrt(6 / 5), 10),
        (
            (0.5, 0.5),
            (3, 60),
            np.sqrt((1 / 2 + 1 / 59) / (1 / 3 + 1 / 60)),
            (1 / 2 + 1 / 59) ** 2 / (1 / 8 + 59**-3),
        ),
        ((), (), np.nan, 0),
    ],
)
def test_designs(shares, clusters, factor, df) -> None:
    design = ClusterDesign(shares, clusters)
    assert design.factor == pytest.approx(factor, nan_ok=True)
    assert design.df == pytest.approx(df)


@pytest.mark.parametrize(
    ("value", "clip", "lo", "hi"),
    [
        (0.5, False, -1.0, 2.0),
        (0.5, True, 0.0, 1.0),
        (0.75, True, 0.0, 1.0),
        (1.0, True, 0.0, 1.0),
        (0.0, True, 0.0, 1.0),
    ],
)
def test_wide_intervals_stay_in_the_range(value, clip, lo, hi) -> None:
    found = interval(value, np.array([0.0, 1.0, 0.5, np.nan]), ClusterDesign((1.0,), (2,)), clip=clip)
    assert (found.lo <= lo, found.hi >= hi) == (True, True)
    assert clip is (found[1:] == (0.0, 1.0))
    narrow = interval(0.9, np.array([0.89, 0.91, 0.9]), ClusterDesign((1.0,), (40,)), clip=True)
    plain = interval(0.9, np.array([0.89, 0.91, 0.9]), ClusterDesign((1.0,), (40,)))
    assert narrow == pytest.approx(plain, abs=2e-3)


@pytest.mark.parametrize(
    ("metric", "n_ood", "clusters", "scarce"),
    [
        ("fpr95_id_positive", 1, (9,), "clusters"),
        ("fpr95_id_positive", 1, (10,), None),
        ("auroc", 9000, (3, 60), "clusters"),
        ("fpr95_ood_positive_interpolated", 400, (60,), "clusters"),
        ("fpr95_ood_positive", 399, (), "images"),
        ("fpr95_ood_positive", 400, (), None),
        ("detection_error_ood_positive", 399, (200,), "images"),
        ("ccr_at_fpr_0.01_nearest", 1999, (), "images"),
        ("ccr_at_fpr_0.001", 20000, (), None),
        ("ccr_at_fpr_1", 1, (), None),
        ("auroc", 1, (), None),
    ],
)
def test_units_are_scarce_by_metric(
    metric: str, n_ood: int, clusters: tuple[int, ...], scarce: str | None
) -> None:
    design = ClusterDesign((1 / len(clusters),) * len(clusters), clusters) if clusters else None
    assert scarce_units(metric, n_ood, design) == scarce


def _with(sets: list[ScoreSet], n: int, **fields: object) -> list[ScoreSet]:
    values = {name: getattr(sets[n], name) for name in ScoreSet.__dataclass_fields__} | fields
    return [*sets[:n], ScoreSet(**values), *sets[n + 1 :]]


@pytest.mark.parametrize(
    "call",
    [
        lambda sets: _with(sets, 1, clusters=np.full(38, 0.5)),
        lambda sets: _with(sets, 1, clusters=["a"] * 38),
        lambda sets: _with(sets, 1, clusters=np.zeros(37, dtype=int)),
        lambda sets: bootstrap_replicates(sets, replicates=1),
        lambda sets: paired_replicates([sets], "auroc", replicates=1),
        lambda sets: paired_replicates([], "auroc"),
        lambda sets: paired_replicates([sets, _with(sets, 1, clusters=np.arange(38))], "auroc"),
        lambda sets: paired_replicates([sets, _with(sets, 1, clusters=None)], "auroc"),
        lambda sets: paired_replicates([sets, _with(sets, 0, clusters=None)], "auroc"),
        lambda sets: paired_replicates([sets, sets[:2]], "auroc"),
        lambda sets: paired_replicates([[*sets, sets[1]]], "auroc"),
        lambda sets: interval(0.5, np.array([0.4, 0.6]), ClusterDesign((1.0,), (2,)), level=1.0),
    ],
)
def test_what_has_no_clusters_to_draw_is_refused(call) -> None:
    with raises(DataError):
        call(nested())
