from __future__ import annotations

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.metrics import ScoreSet, aurc_unknown, auroc, composition, pool, role_means, spread

ID = ScoreSet("cifar-40", "id", [0.9, 0.8, 0.4], [1, 1, 0])
SHIFTED = ScoreSet("cifar-c", "csid", [0.7, 0.3], [1, 0])
NEAR = ScoreSet("cifar-60", "near", [0.6, 0.2])
FAR = ScoreSet("svhn", "far", [0.5])


def test_roles_decide_the_side():
    assert [part.is_id for part in (ID, SHIFTED, NEAR, FAR)] == [True, True, False, False]
    counts = pool([ID, NEAR, FAR])
    assert (int(counts.n_id), int(counts.n_ood)) == (3, 3)
    assert auroc(counts) == auroc([0.9, 0.8, 0.4], [0.6, 0.2, 0.5])


def test_full_spectrum_pools_shifted_id_with_id():
    sets = [ID, SHIFTED, NEAR]
    assert auroc(pool(sets)) == auroc([0.9, 0.8, 0.4], [0.6, 0.2])
    assert auroc(pool(sets, full_spectrum=True)) == auroc([0.9, 0.8, 0.4, 0.7, 0.3], [0.6, 0.2])
    expected = aurc_unknown([0.9, 0.8, 0.4, 0.7, 0.3], [1, 1, 0, 1, 0], [0.6, 0.2])
    assert aurc_unknown(pool(sets, full_spectrum=True)) == expected


def test_correctness_of_the_pool_is_known_when_it_is_of_every_id_set():
    assert pool([ID, NEAR]).cum_correct is not None
    unknown = ScoreSet("imagenet-v2", "csid", [0.5])
    assert pool([ID, unknown, NEAR]).cum_correct is not None
    assert pool([ID, unknown, NEAR], full_spectrum=True).cum_correct is None


def test_composition_goes_with_a_pooled_metric():
    assert composition([ID, SHIFTED, NEAR, FAR]) == (
        {"cifar-40": 3, "cifar-60": 2, "svhn": 1},
        3,
        3,
        0.5,
    )
    assert composition([ID, SHIFTED, NEAR], full_spectrum=True).n_id == 5
    with pytest.raises(DataError):
        composition([])


def test_role_means_are_unweighted():
    values = {"a": 0.9, "b": 0.5, "c": 0.8}
    roles = {"a": "near", "b": "near", "c": "far", "d": "far"}
    assert role_means(values, roles) == {"far": 0.8, "near": pytest.approx(0.7)}
    assert np.isnan(role_means({"a": 0.9, "b": np.nan}, roles)["near"])
    with pytest.raises(DataError):
        role_means({"e": 1.0}, roles)


def test_spread_over_runs():
    assert spread([0.7, 0.8, 0.9]) == pytest.approx((0.8, 0.1, 3))
    assert spread([0.9, 0.7, 0.8], ddof=0).sd == pytest.approx(np.sqrt(0.02 / 3))
    assert spread([0.7, 0.8, 0.9]) == spread([0.9, 0.7, 0.8])
    single = spread([0.7])
    assert single.mean == 0.7
    assert np.isnan(single.sd)
    with pytest.raises(DataError):
        spread([])


@pytest.mark.parametrize(
    ("arguments", "error", "where"),
    [
        (("svhn", "farr", [1.0]), UnknownNameError, "svhn"),
        (("svhn", "far", [np.nan]), DataError, "svhn: scores"),
        (("svhn", "far", [1.0], [1]), DataError, "svhn"),
        (("cifar-40", "id", [1.0], [1, 0]), DataError, "cifar-40: correct"),
    ],
)
def test_a_wrong_set_is_refused_by_name(arguments, error, where: str):
    with raises(error, where=where):
        ScoreSet(*arguments)
