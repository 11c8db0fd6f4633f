"""Every registered detector: direction, sweeps, invariances, formulas against independent computation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.covariance import EmpiricalCovariance

from loaders.harness.data.arrays import Array, Arrays, Head
from loaders.harness.detectors import (
    DETECTORS,
    ConfiguredDetector,
    get_detector,
    get_spec,
    list_detectors,
    neighbours,
    parse_detectors,
)
from loaders.harness.detectors.parsing import is_log_probability
from loaders.harness.evaluation import scoring
from loaders.harness.evaluation.fitting import sweep_grid
from loaders.harness.evaluation.scoring import Fitted, confidence, confidences, fit, predicted
from tests.loaders.harness.detectors.separable import (
    CLASSES,
    head_of,
    images,
    learned,
    reordered,
    without_step,
)
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.metrics import auroc

BUILT_IN = list_detectors()
TRAIN, VAL = images(1600, seed=1), images(120, seed=2)
KNOWN, UNKNOWN = images(300, seed=3), images(300, seed=4, unknown=True)
SPLITS = {"train": TRAIN, "val": VAL, "ood-val": images(100, seed=5, unknown=True)}
HEAD = head_of()
WIDE = {"classes": 110, "width": 1030}
"""Room for every swept value: 110 > M of GEN, 1030 > dim of ViM; 42 images of a class > tail of OpenMax."""
Z = np.asarray(KNOWN["logits"], dtype=np.float64)


def several(data: Arrays) -> list[Arrays]:
    """Three models that differ a little."""
    shift = np.linspace(-1, 1, data["logits"].shape[1], dtype=np.float32)
    return [
        data.replace(logits=np.asarray(data["logits"]) * factor + factor * shift) for factor in (0.8, 1, 1.3)
    ]


def score(
    chosen: ConfiguredDetector,
    data: Arrays,
    *,
    rows: int = 4096,
    splits: Mapping[str, Arrays] = SPLITS,
    head: Head = HEAD,
) -> Array:
    fitted = learned(chosen, splits, head, models=3)
    return confidence(fitted, several(data) if chosen.spec.models == "many" else data, rows=rows)


@pytest.mark.parametrize("name", BUILT_IN)
def test_known_images_score_higher(name: str) -> None:
    chosen = without_step(name)
    assert auroc(score(chosen, KNOWN), score(chosen, UNKNOWN)) > 0.9


@pytest.fixture(scope="module")
def wide() -> dict[str, Arrays]:
    return {
        split: images(n, seed=5 + n, **WIDE) for split, n in (("train", 4620), ("val", 220), ("test", 60))
    }


@pytest.mark.parametrize("name", [n for n in BUILT_IN if DETECTORS[n].sweep])
def test_every_swept_value_changes_the_scores(name: str, wide: dict[str, Arrays]) -> None:
    chosen = without_step(name)
    for parameter, values in chosen.spec.sweep.items():
        scores = [
            score(chosen.with_params({parameter: v}, ""), wide["test"], splits=wide, head=head_of(**WIDE))
            for v in values
        ]
        for a in range(len(values)):
            for b in range(a):
                assert not np.array_equal(scores[a], scores[b]), (parameter, values[a], values[b])


@pytest.mark.parametrize("name", [n for n in BUILT_IN if DETECTORS[n].fit_parameters is not None])
def test_values_that_fitting_does_not_read_share_its_state(name: str, wide: dict[str, Arrays]) -> None:
    chosen, head = get_detector(name), head_of(**WIDE)
    assert isinstance(chosen.spec.fit_on, str | None)
    state = fit(chosen, wide[chosen.spec.fit_on] if chosen.spec.fit_on else None, head).state
    others = [parameter for parameter in chosen.sweep if parameter not in chosen.spec.fit_parameters]
    assert others
    for parameter in others:
        candidate = chosen.with_params({parameter: chosen.sweep[parameter][-1]}, "")
        shared = confidence(Fitted(candidate, candidate.detector, state), wide["test"])
        np.testing.assert_array_equal(shared, score(candidate, wide["test"], splits=wide, head=head))


@pytest.mark.parametrize("name", [n for n in BUILT_IN if hasattr(DETECTORS[n].implementation, "score_each")])
def test_values_scored_in_one_go_have_the_scores_of_each_alone(name: str, wide: dict[str, Arrays]) -> None:
    grid = list(sweep_grid(get_detector(name)))
    split, head = DETECTORS[name].fit_on, head_of(**WIDE)
    assert split is None or isinstance(split, str)
    states: dict[Any, Any] = {}
    for one in grid:
        states.setdefault(one.fit_key, fit(one, wide[split] if split else None, head).state)
    for shared, state in states.items():
        several = [Fitted(one, one.detector, state) for one in grid if one.fit_key == shared]
        together = confidences(several, wide["test"], rows=25)
        for fitted, scores in zip(several, together, strict=True):
            alone = confidence(fitted, wide["test"])
            np.testing.assert_allclose(scores, alone, rtol=1e-5, err_msg=fitted.where)


@pytest.mark.parametrize("name", BUILT_IN)
def test_chunks_and_row_order_play_no_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # it is trained four times here
    chosen = get_detector(name, epochs=2) if name == "opengan" else without_step(name)
    whole, outside = score(chosen, KNOWN), score(chosen, UNKNOWN)
    monkeypatch.setattr(neighbours, "QUERIES", 7)
    monkeypatch.setattr(neighbours, "BANK", 64)
    chunked = score(chosen, KNOWN, rows=11)
    noise = 1e-6 * np.abs(whole).max()  # a sum near zero loses digits that depend on the number of threads
    np.testing.assert_allclose(chunked, whole, rtol=1e-4, atol=noise)
    order = np.random.default_rng(0).permutation(KNOWN.n)
    rng = np.random.default_rng(1)
    shuffled_splits = {split: reordered(data, rng.permutation(data.n)) for split, data in SPLITS.items()}
    shuffled = score(chosen, reordered(KNOWN, order), splits=shuffled_splits)
    np.testing.assert_allclose(shuffled, whole[order], rtol=1e-4, atol=noise)
    for other in (chunked, shuffled):
        assert auroc(other, outside) == pytest.approx(auroc(whole, outside), abs=1e-6)


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_says_what_it_is_and_names_its_paper(name: str) -> None:
    method = get_spec(name)
    assert method.summary.endswith(".")
    if name == "output":  # the paper is that of the training method
        return
    assert method.paper is not None
    assert method.paper.url.startswith("https://")
    assert str(method.paper.year) in str(method.paper)


P = softmax(Z, axis=1)
SORTED = np.sort(P, axis=1)[:, ::-1]
FORMULAS: dict[str, Array] = {
    "msp": log_softmax(Z, axis=1).max(axis=1),
    "mls": Z.max(axis=1),
    "entropy": -stats.entropy(P, axis=1),
    "margin": -np.log(1 - (SORTED[:, 0] - SORTED[:, 1])),
    "energy": logsumexp(Z, axis=1),
    "energy[T=10]": 10 * logsumexp(Z / 10, axis=1),
    "ts[T=2]": 2 * (np.log(CLASSES - 1) + stats.logistic.ppf(softmax(Z / 2, axis=1).max(axis=1))),
}


@pytest.mark.parametrize("spec", FORMULAS)
def test_formula(spec: str) -> None:
    (chosen,) = parse_detectors(spec)
    np.testing.assert_allclose(score(chosen, KNOWN), FORMULAS[spec], rtol=1e-5, atol=1e-6)


def test_msp_float32_is_the_softmax_of_float32() -> None:
    found = score(get_detector("msp_float32"), KNOWN)
    np.testing.assert_allclose(found, P.max(axis=1), rtol=1e-6)
    wide = Arrays.of(logits=np.array([[30, 0], [40, 0]], np.float32))
    assert confidence(fit(get_detector("msp_float32")), wide).tolist() == [1, 1]  # the ties that papers have


def test_odin_is_the_maximum_softmax_of_its_probe() -> None:
    z = np.asarray(KNOWN["odin[T=10,eps=0.0028]/logits"], dtype=np.float64)
    found = score(get_detector("odin", T=10, eps=0.0028), KNOWN)
    assert stats.spearmanr(found, softmax(z / 10, axis=1).max(axis=1)).statistic == pytest.approx(1)
    assert np.array_equal(
        score(get_detector("ip_ts_mlv", T=10, eps=0.0028), KNOWN), z.max(axis=1).astype("f4")
    )


def test_odin_without_its_probe_says_which_array_it_needs() -> None:
    with raises(DataError, where="'odin[T=7,eps=0]'", naming="odin[T=7,eps=0]/logits"):
        score(get_detector("odin", T=7, eps=0), KNOWN)


def test_temperature_has_the_lowest_nll_of_all() -> None:
    chosen = get_detector("tempscale")
    labels = np.asarray(VAL["labels"]).copy()
    labels[::10] = (labels[::10] + 1) % CLASSES  # some are wrong, else the best temperature is 0
    fitted = fit(chosen, VAL.replace(labels=labels))
    logits = np.asarray(VAL["logits"], dtype=np.float64)

    def nll(temperature: float) -> float:
        return float(-log_softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels].mean())

    grid = np.geomspace(0.01, 100, 2001)
    assert nll(fitted.state) <= min(nll(t) for t in grid)
    expected = softmax(Z / fitted.state, axis=1).max(axis=1)
    assert stats.spearmanr(confidence(fitted, KNOWN), expected).statistic == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("on", ["features", "logits"])
def test_mahalanobis_is_that_of_scikit_learn(on: str) -> None:
    x, labels = np.asarray(TRAIN[on], dtype=np.float64), np.asarray(TRAIN["labels"])
    means = np.stack([x[labels == c].mean(axis=0) for c in range(CLASSES)])
    tied = EmpiricalCovariance(assume_centered=True).fit(x - means[labels])
    points = np.asarray(KNOWN[on], dtype=np.float64)
    each = np.stack([((points - m) @ tied.precision_ * (points - m)).sum(axis=1) for m in means])
    np.testing.assert_allclose(score(get_detector("mahalanobis", on=on), KNOWN), -each.min(axis=0), rtol=1e-4)


def test_mahalanobis_leaves_out_directions_in_which_nothing_varies() -> None:
    """As a pseudo-inverse: dead and repeated features change nothing."""

    def widened(data: Arrays) -> Arrays:
        x = np.asarray(data["features"])
        return data.replace(
            features=np.concatenate([x, np.zeros((len(x), 2), np.float32), x[:, :1] + x[:, 1:2]], 1)
        )

    chosen = get_detector("mds")
    plain = confidence(fit(chosen, TRAIN), KNOWN)
    wide = confidence(fit(chosen, widened(TRAIN)), widened(KNOWN))
    np.testing.assert_allclose(wide, plain, rtol=1e-4)


@pytest.mark.parametrize("name", ["mds", "rmds"])
def test_mahalanobis_takes_many_features_in_half_precision(name: str, wide: dict[str, Arrays]) -> None:
    chosen = get_detector(name)
    narrow = {s: d.replace(features=np.asarray(d["features"], dtype=np.float16)) for s, d in wide.items()}
    found = score(chosen, narrow["test"], splits=narrow)
    np.testing.assert_allclose(found, score(chosen, wide["test"], splits=wide), rtol=0.02, atol=2)


def test_ensemble_is_the_greatest_mean_softmax_and_predicts_it() -> None:
    models = several(KNOWN)
    mean = np.mean([softmax(np.asarray(m["logits"], dtype=np.float64), axis=1) for m in models], axis=0)
    chosen = get_detector("ensemble")
    np.testing.assert_allclose(score(chosen, KNOWN), np.log(mean.max(axis=1)), rtol=1e-5, atol=1e-7)
    joint = predicted(fit(chosen, None, [None] * 3), models)
    np.testing.assert_allclose(np.exp(joint["logits"][:]), mean, rtol=1e-12)


def test_entropy_and_variance_of_averages_are_the_formulas() -> None:
    models = several(KNOWN)
    p = np.stack([softmax(np.asarray(m["logits"], dtype=np.float64), axis=1) for m in models])
    mean, variance = p.mean(axis=0), ((p - p.mean(axis=0)) ** 2).mean(axis=0).mean(axis=1)
    expected = {"entropy": (mean * np.log(mean)).sum(axis=1), "variance": -variance}
    unit = "dropout[passes=3]"
    passes = Arrays.of(**{f"{unit}/logits": np.log(mean), f"{unit}/variance": variance})
    for kind, values in expected.items():
        ensemble = get_detector("ensemble", confidence=kind)
        np.testing.assert_allclose(score(ensemble, KNOWN), values, rtol=1e-4, atol=1e-7)
        dropout = get_detector("mc_dropout", passes=3, confidence=kind)
        np.testing.assert_allclose(confidence(fit(dropout), passes), values, rtol=1e-4, atol=1e-7)
        assert (f"{unit}/variance" in dropout.needs) == (kind == "variance")
        assert not is_log_probability(ensemble.label)
        joint = predicted(fit(ensemble, None, [None] * 3), models)  # the mean predicts, whatever ranks it
        np.testing.assert_allclose(np.exp(joint["logits"][:]), mean, rtol=1e-12)
    assert is_log_probability("mc_dropout[passes=3]")


def test_ensemble_of_different_heads_is_refused() -> None:
    models = [KNOWN, KNOWN.replace(logits=np.zeros((KNOWN.n, 5), np.float32))]
    with raises(DataError, where="'ensemble'"):
        confidence(fit(get_detector("ensemble"), None, [None, None]), models)


SATURATING = ("msp", "ts", "tempscale", "entropy", "margin", "energy", "mls", "ensemble", "odin")


@pytest.mark.parametrize("name", SATURATING)
def test_float32_logits_with_margins_around_50_are_still_ranked(name: str) -> None:
    margins = np.array([20, 30, 38, 49, 50, 51, 60], np.float32)
    logits = np.zeros((len(margins), CLASSES), np.float32)
    logits[:, 1] = margins
    data = Arrays({"logits": logits, "odin[T=1000,eps=0.0014]/logits": logits})
    chosen = get_detector(name)
    if chosen.spec.models == "many":
        found = confidence(fit(chosen, None, [None, None]), [data, data])
    else:
        found = confidence(fit(chosen, VAL), data)
    assert np.array_equal(np.argsort(found), np.arange(len(margins)))
    assert len(np.unique(found)) == len(margins)


def test_the_gap_of_a_confidence_near_chance_survives_a_high_temperature() -> None:
    logits = np.array([[1, 0, 0, 0], [1.0001, 0, 0, 0]], np.float32)
    low, high = confidence(fit(get_detector("ts", T=1000)), Arrays.of(logits=logits))
    assert high > low


@pytest.mark.parametrize("name", ["msp", "msp_float32", "ts", "margin"])
def test_a_background_class_stays_in_the_denominator(name: str) -> None:
    """Its column is dropped after softmax: an image of the background has low confidence in every class."""
    background = np.random.default_rng(5).normal(0, 3, KNOWN.n).astype(np.float32)
    data = KNOWN.replace(background=background)
    found = confidence(fit(get_detector(name)), data)
    temperature = 1000 if name == "ts" else 1
    p = softmax(np.column_stack([Z, background]) / temperature, axis=1)[:, :CLASSES]
    top = np.sort(p, axis=1)[:, ::-1]
    expected = top[:, 0] - top[:, 1] if name == "margin" else top[:, 0]
    assert stats.spearmanr(found, expected).statistic == pytest.approx(1, abs=1e-5)
    assert not np.array_equal(np.argsort(found), np.argsort(confidence(fit(get_detector(name)), KNOWN)))


def test_background_far_above_the_classes_gives_finite_scores() -> None:
    data = Arrays.of(logits=np.zeros((2, 3), np.float32), background=np.array([800, 900], np.float32))
    low, lower = confidence(fit(get_detector("msp")), data)
    assert low > lower


def test_an_ensemble_with_background_and_the_entropy_of_one() -> None:
    data = KNOWN.replace(background=np.ones(KNOWN.n, np.float32))
    p = softmax(np.column_stack([Z, np.ones(KNOWN.n)]), axis=1)[:, :CLASSES]
    found = confidence(fit(get_detector("ensemble"), None, [None, None]), [data, data])
    np.testing.assert_allclose(found, np.log(p.max(axis=1)), rtol=1e-5, atol=1e-6)
    with raises(DataError, where="'entropy'"):
        confidence(fit(get_detector("entropy")), data)


@dataclass(frozen=True)
class Bad:
    """A detector that fails as asked."""

    how: str = "nan"

    def score(self, state: None, data: Arrays) -> Array:
        """Return something wrong for the third image."""
        scores = np.zeros(data.n)
        wrong: dict[str, Any] = {"nan": np.nan, "inf": np.inf}
        if self.how == "integers":
            return np.arange(data.n) + 2**57
        if self.how in wrong:
            scores[2] = wrong[self.how]
        return (
            scores.astype(complex) if self.how == "complex" else scores[: -1 if self.how == "short" else None]
        )


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ("nan", ("bad[how=nan]", "svhn", "300")),
        ("inf", ()),
        ("integers", ()),  # float64 rounds them to ties
        ("short", ("299", "300")),
        ("complex", "complex"),
    ],
)
def test_bad_scores_are_refused_by_the_name_of_the_detector(how: str, named: object) -> None:
    from loaders.harness.detectors import detector_spec
    from loaders.harness.detectors.registry import configure

    chosen = configure(detector_spec(Bad), {"how": how}, label="bad")
    with raises(DataError, naming=named):
        confidence(fit(chosen), KNOWN, on="svhn")


def test_a_detector_without_its_data_or_head_is_refused() -> None:
    with raises(DataError, where="'knn'"):
        fit(get_detector("knn"))
    with raises(DataError, where="'knn'", naming="features"):
        fit(get_detector("knn"), Arrays.of(logits=np.zeros((60, 2)), labels=np.zeros(60)))
    with raises(DataError, where="'mahalanobis'", naming="labels"):
        fit(get_detector("mahalanobis"), Arrays.of(features=np.zeros((60, 2))))
    with raises(DataError, where="'msp'", naming="logits"):
        confidence(fit(get_detector("msp")), Arrays.of(features=np.zeros((60, 2))))


def test_scoring_names_a_group_of_models_that_saw_different_images() -> None:
    with pytest.raises(DataError):
        scoring.confidence(fit(get_detector("ensemble"), None, [None, None]), [KNOWN, KNOWN.rows(0, 5)])
