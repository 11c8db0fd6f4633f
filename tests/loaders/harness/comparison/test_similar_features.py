"""The search for similar features finds exactly the pairs of the whole matrix in float64."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from loaders.harness.comparison import similar_features as sf  # noqa: E402 - after importorskip
from tests.raising import raises  # noqa: E402 - after importorskip
from wordnet_splits.base.errors import DataError, SplitsError  # noqa: E402 - after importorskip

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]


def found(a, b, least, **options):
    pairs = [
        p
        for columns in sf.similar_pairs(a, b, least, **options)
        for p in zip(*map(np.ndarray.tolist, columns), strict=True)
    ]
    assert len(pairs) == len({pair[:2] for pair in pairs})
    return {pair[:2]: pair[2] for pair in pairs}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("least", [0.2, 0.95, 1 - 1e-7])
def test_the_pairs_are_those_of_the_whole_matrix(monkeypatch, device, dtype, least):
    monkeypatch.setattr(sf, "TILE", 37)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((100, 64)).astype(dtype)
    b = np.concatenate(
        [a[:20] + rng.normal(0, 0.3, (20, 64)), a[20:40] * 2, rng.standard_normal((60, 64))]
    ).astype(dtype)
    unit = [x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1)[:, None] for x in (a, b)]
    similarity = unit[0] @ unit[1].T
    pairs = found(a, b, least, device=device)
    borderline = np.abs(similarity - least) < 1e-12
    expected = {tuple(p) for p in np.argwhere(similarity >= least).tolist()}
    assert {p for p in pairs if not borderline[p]} == {p for p in expected if not borderline[p]}
    assert len(expected) >= 20
    for pair, value in pairs.items():
        assert value == pytest.approx(similarity[pair], abs=1e-12)


def test_a_similarity_that_float32_cannot_tell_is_decided_in_float64():
    a = np.eye(2, 64)
    angle = 1e-4  # cosine 1 - 5e-9, which float32 rounds to 1
    b = np.stack([np.cos(angle) * a[0] + np.sin(angle) * a[1], a[0]])
    assert found(a, b, 1.0, device="cpu") == {(0, 1): 1.0}


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_a_row_without_a_direction_is_refused(bad):
    features = np.ones((5, 3))
    features[3] = bad
    with raises(DataError, naming="3"):
        found(np.ones((2, 3)), features, 0.9, device="cpu")


def test_bad_input_is_refused():
    ones = np.ones((20, 3))
    with pytest.raises(DataError):
        found(ones, np.ones((2, 4)), 0.9)
    with raises(SplitsError, naming="-1"):
        found(ones, ones, 1.5)
    with raises(SplitsError, naming="100"):
        found(ones, ones, 0.9, most=100, device="cpu")
