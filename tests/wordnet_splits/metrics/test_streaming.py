from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.metrics import evaluate, evaluate_scores, pool, rank_counts, streaming
from wordnet_splits.metrics.summary import ScoreSet

from .reference import tied_scores

SIZES = [
    pytest.param(*tied_scores(seed, n_id, n_ood, levels), id=f"{n_id}x{n_ood}-{levels}")
    for seed, (n_id, n_ood, levels) in enumerate(
        [(9000, 7001, None), (3000, 1, None), (4000, 9000, 4000), (400, 4000, 4), (2000, 100, 1), (1, 1, 1)]
    )
]


@pytest.fixture(params=[(1 << 15, 1 << 16), (97, 128), (1, 130)], ids=["whole", "blocks", "single"])
def block_sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant, value in zip(("BLOCK", "LEAF"), request.param, strict=True):
        monkeypatch.setattr(streaming, constant, value)


@pytest.mark.usefixtures("block_sizes")
@pytest.mark.parametrize(("inside", "outside"), SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_equal_those_of_counts_bit_by_bit(
    inside: np.ndarray, outside: np.ndarray, dtype: type
) -> None:
    inside, outside = inside.astype(dtype), outside.astype(dtype)
    expected = evaluate(rank_counts(inside, outside), streaming.STREAMED)
    assert evaluate_scores(inside, outside, streaming.STREAMED) == expected


@pytest.mark.parametrize(("inside", "outside"), SIZES)
def test_values_equal_scikit_learn(inside: np.ndarray, outside: np.ndarray) -> None:
    scores, is_id = np.concatenate([inside, outside]), np.repeat([1, 0], [len(inside), len(outside)])
    fpr, tpr, _ = roc_curve(is_id, scores, drop_intermediate=False)
    values = evaluate_scores(inside, outside, ("auroc", "aupr_in", "aupr_out", "fpr95_id_positive"))
    assert list(values.values()) == pytest.approx(
        [
            roc_auc_score(is_id, scores),
            average_precision_score(is_id, scores),
            average_precision_score(1 - is_id, -scores),
            fpr[np.argmax(tpr >= 0.95)],
        ],
        abs=1e-12,
    )


def test_pooled_groups_of_unequal_size_and_type() -> None:
    rng = np.random.default_rng(3)
    sets = [
        ScoreSet("id", "id", rng.integers(0, 50, 900)),
        ScoreSet("svhn", "far", rng.integers(0, 40, 700).astype(np.float32)),
        ScoreSet("lsun", "far", rng.integers(0, 45, 30)),
    ]
    inside, *outside = (part.confidence for part in sets)
    values = evaluate_scores(inside, np.concatenate(outside), streaming.STREAMED)
    assert values == evaluate(pool(sets), streaming.STREAMED)


def test_memory_beside_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "BLOCK", 1 << 11)
    monkeypatch.setattr(streaming, "LEAF", 1 << 12)
    rng = np.random.default_rng(0)
    inside, outside = (rng.standard_normal(200_000, dtype=np.float32) for _ in range(2))
    tracemalloc.start()
    try:
        evaluate_scores(inside, outside, streaming.STREAMED)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 6 * 400_000


def test_the_input_stays_as_it_was() -> None:
    inside, outside = np.array([0.3, 0.9], np.float32), np.array([0.5, 0.1], np.float32)
    evaluate_scores(inside, outside)
    assert (inside[0], outside[0]) == (np.float32(0.3), np.float32(0.5))


def test_errors() -> None:
    with raises(UnknownNameError, naming="aurc"):
        evaluate_scores([1], [0], ("aurc",))
    with raises(DataError, where="svhn"):
        evaluate_scores([1.0], [], name="svhn")
