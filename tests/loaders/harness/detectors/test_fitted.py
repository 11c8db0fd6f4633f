"""What detectors learn and change, against independent computation: tails, patterns, shaped features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import spatial, stats
from scipy.special import logsumexp, softmax

from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.detectors import get_detector, get_spec, list_detectors, parse_detectors
from loaders.harness.detectors.openmax import SHIFT, weibull
from loaders.harness.detectors.shaping import Ranked
from loaders.harness.evaluation.scoring import confidence, fit, predicted
from tests.loaders.harness.detectors.separable import CLASSES, WIDTH, head_of, images
from tests.raising import raises
from wordnet_splits.base.errors import DataError

TRAIN, VAL, KNOWN = images(800, seed=1), images(120, seed=2), images(200, seed=3)
HEAD = head_of()
F, Z = (np.asarray(KNOWN[name], dtype=np.float64) for name in ("features", "logits"))


def scores(spec: str, learn: Arrays | None = None, data: Arrays = KNOWN) -> Array:
    (chosen,) = parse_detectors(spec)
    return confidence(fit(chosen, learn, HEAD), data)


def test_the_weibull_fit_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    tails = np.sort(rng.gumbel(5, 0.3, (6, 20)) + 4, axis=1)
    tails[1, :9] = np.nan
    found = weibull(tails)
    for row, tail in enumerate(tails):
        own = tail[np.isfinite(tail)]
        shape, _, scale = stats.weibull_min.fit(own + SHIFT - own.min(), 1e4, loc=0, scale=SHIFT, floc=0)
        at = np.linspace(own.min(), own.max() + 1, 9)
        expected = stats.weibull_min.cdf(at + SHIFT - own.min(), shape, scale=scale)
        ours = found.cdf(np.broadcast_to(at[:, None], (9, 6)))[:, row]
        np.testing.assert_allclose(ours, expected, atol=2e-3)  # scipy's search stops early
        logs = np.log(own + SHIFT - own.min())
        k = found.shape[row] * SHIFT
        powers = np.exp(k * (logs - logs.max()))
        assert (powers @ logs) / powers.sum() - 1 / k == pytest.approx(logs.mean(), abs=1e-11)


def test_a_tail_of_one_distance_is_a_step_and_no_distance_revises_nothing() -> None:
    found = weibull(np.array([[2.0, 2.0], [3.0, np.nan], [np.nan, np.nan]]))
    below, above = found.cdf(np.array([[1.99, 2.99, 0.0], [2.01, 3.01, 9e9]]))
    assert below.tolist() == [0, 0, 0]
    assert above.tolist() == [1, 1, 0]


def test_openmax_predicts_from_revised_logits() -> None:
    (chosen,) = parse_detectors("openmax[alpha=2]")
    fitted = fit(chosen, TRAIN, HEAD)
    own = predicted(fitted, KNOWN)
    columns = np.column_stack([own["logits"][:], own["background"][:]])
    np.testing.assert_allclose(columns.sum(axis=1), Z.sum(axis=1), rtol=1e-5)  # moved, never lost
    p = softmax(columns, axis=1)
    np.testing.assert_allclose(confidence(fitted, KNOWN), np.log(1 - p[:, -1]) - np.log(p[:, -1]), rtol=1e-4)


def test_openmax_revises_every_class_by_omega_as_in_the_code_of_kim() -> None:
    (chosen,) = parse_detectors("openmax[alpha=2,tail=2,weight=0.005,omega=0.5]")
    fitted = fit(chosen, TRAIN, HEAD)
    own, means = predicted(fitted, KNOWN), fitted.state.means
    for row, z in enumerate(np.asarray(KNOWN["logits"][:20], dtype=np.float64)):
        distances = [0.005 * np.linalg.norm(z - m) + spatial.distance.cosine(z, m) for m in means]
        far, revised = fitted.state.tails.cdf(np.array([distances]))[0], z.copy()
        for c in np.argsort(z)[::-1][:2]:
            revised[c] -= 0.5 * far[c] * z[c]
        np.testing.assert_allclose(own["logits"][row], revised, rtol=1e-6)
        np.testing.assert_allclose(own["background"][row], (z - revised).sum(), rtol=1e-6, atol=1e-9)


def test_a_class_never_predicted_rightly_is_not_revised_by_openmax_and_has_a_pattern_in_she() -> None:
    logits = np.asarray(TRAIN["logits"]).copy()
    logits[:, 2] = -9
    blind = TRAIN.replace(logits=logits)
    assert np.isfinite(scores("openmax", blind)).all()
    found = fit(get_detector("she"), blind).state
    labels = np.asarray(TRAIN["labels"])
    means = np.stack([np.asarray(TRAIN["features"])[labels == c].mean(axis=0) for c in range(CLASSES)])
    np.testing.assert_allclose(found, means, rtol=1e-4)


UNLABELLED = {"labels": np.full(TRAIN.n, -1)}
WRONG = {"labels": (np.asarray(TRAIN["labels"]) + 1) % CLASSES}
CONSTANT = {"features": np.ones((TRAIN.n, 3), np.float32)}


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        *(("tempscale", UNLABELLED), ("mds", UNLABELLED), ("rmds", UNLABELLED), ("she", UNLABELLED)),
        *(("openmax", UNLABELLED), ("openmax", WRONG), ("mds", CONSTANT), ("rmds", CONSTANT)),
    ],
)
def test_images_that_teach_nothing_are_refused(name: str, arrays: dict[str, Array]) -> None:
    with raises(DataError, where=f"'{name}'"):
        fit(get_detector(name), TRAIN.replace(**arrays))


def test_vra_is_zero_below_and_cut_above() -> None:
    low, high = np.percentile(np.asarray(VAL["features"]), [50, 90])
    kept = np.where(low > F, 0, np.minimum(F, high))
    expected = logsumexp(kept @ HEAD.weight.T.astype(float) + HEAD.bias, axis=1)
    np.testing.assert_allclose(scores("vra[low=50,high=90]", VAL), expected, rtol=1e-5)


def test_equal_features_are_kept_from_the_first_on() -> None:
    values = np.array([[0, 3, 3, 3, 1], [0, 0, 0, 5, 0], [1, 2, 3, 4, 5], [2, 2, 2, 2, 2]], np.float32)
    kept = Ranked(values, np.sort(values, axis=1)).greatest(2).astype(int)
    assert kept.tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [0, 0, 0, 1, 1], [1, 1, 0, 0, 0]]


@pytest.mark.parametrize("spec", ["ash", "ash[variant=s]", "ash[variant=p]", "scale", "gradnorm", "gen"])
def test_features_of_nothing_have_a_score(spec: str) -> None:
    blank = Arrays.of(features=np.zeros((3, WIDTH), np.float32), logits=np.tile(HEAD.bias, (3, 1)))
    assert np.isfinite(scores(spec, data=blank)).all()


def test_shaped_features_are_what_predictions_are_read_from() -> None:
    (chosen,) = parse_detectors("ash[variant=p,percentile=90]")
    own = predicted(fit(chosen, None, HEAD), KNOWN)["logits"][:]
    kept = np.where(np.sort(F, axis=1)[:, [-4]] <= F, F, 0)
    np.testing.assert_allclose(own, kept @ HEAD.weight.T + HEAD.bias, rtol=1e-4, atol=1e-5)


def test_scale_from_the_logits_is_that_from_the_features() -> None:
    top = np.sort(F, axis=1)[:, -round(WIDTH * 0.15) :].sum(axis=1)
    grown = F * np.exp(F.sum(axis=1) / top)[:, None]
    np.testing.assert_allclose(
        scores("scale"), logsumexp(grown @ HEAD.weight.T + HEAD.bias, axis=1), rtol=1e-5
    )


@pytest.mark.parametrize(("gamma", "m"), [(0.1, 4), (0.5, 2), (2.0, 1), (0.1, 9)])
def test_gen_is_its_formula_without_cuts(gamma: float, m: int) -> None:
    p = np.sort(softmax(Z, axis=1), axis=1)[:, ::-1][:, :m]
    expected = -(p**gamma * (1 - p) ** gamma).sum(axis=1)
    np.testing.assert_allclose(scores(f"gen[gamma={gamma},M={m}]"), expected, rtol=1e-5)


def test_gen_ranks_certain_images() -> None:
    margins = np.array([20, 30, 38, 49, 50, 60], np.float32)
    logits = np.zeros((len(margins), CLASSES), np.float32)
    logits[:, 1] = margins
    found = scores("gen", data=Arrays.of(logits=logits))
    assert np.array_equal(np.argsort(found), np.arange(len(margins)))


def test_klm_is_the_divergence_from_the_nearest_mean_even_where_a_class_has_no_probability() -> None:
    p, seen = softmax(Z, axis=1), np.asarray(VAL["logits"], dtype=np.float64)
    q = softmax(seen, axis=1)
    means = np.stack([q[seen.argmax(axis=1) == k].mean(axis=0) for k in range(CLASSES)])
    divergence = np.stack([stats.entropy(p, m[None], axis=1) for m in means])
    np.testing.assert_allclose(scores("klm", VAL), -divergence.min(axis=0), rtol=1e-4, atol=1e-7)
    extreme = VAL.replace(logits=(seen * 400).astype(np.float32))
    assert np.isfinite(scores("klm", extreme)).all()


def test_fdbd_is_the_mean_distance_to_boundaries_over_that_to_the_mean() -> None:
    w = HEAD.weight.astype(float)
    centre = np.asarray(TRAIN["features"], dtype=np.float64).mean(axis=0)
    expected = []
    for f, z in zip(F, Z, strict=True):
        top = z.argmax()
        apart = [(z[top] - z[j]) / np.linalg.norm(w[top] - w[j]) for j in range(CLASSES) if j != top]
        expected.append(np.mean(apart) / np.linalg.norm(f - centre))
    np.testing.assert_allclose(scores("fdbd", TRAIN), expected, rtol=1e-5)


def test_nci_adds_the_norm() -> None:
    plain, more = scores("nci[alpha=0]", TRAIN), scores("nci[alpha=0.01]", TRAIN)
    np.testing.assert_allclose(more - plain, 0.01 * F.sum(axis=1), rtol=1e-3)


@pytest.mark.parametrize("dim", [5, 25])
def test_vim_keeps_what_lies_outside_the_main_directions(dim: int) -> None:
    weight = HEAD.weight.astype(float)
    origin = -np.linalg.pinv(weight) @ HEAD.bias
    rows = np.asarray(TRAIN["features"], dtype=np.float64) - origin
    null = np.linalg.svd(rows, full_matrices=False)[2][dim:]
    alpha = np.asarray(TRAIN["logits"]).max(axis=1).mean() / np.linalg.norm(rows @ null.T, axis=1).mean()
    expected = logsumexp(Z, axis=1) - alpha * np.linalg.norm((F - origin) @ null.T, axis=1)
    np.testing.assert_allclose(scores(f"vim[dim={dim}]", TRAIN), expected, rtol=1e-4, atol=1e-5)


def test_relative_mahalanobis_takes_the_distance_to_all_images_off() -> None:
    x, labels = np.asarray(TRAIN["features"], dtype=np.float64), np.asarray(TRAIN["labels"])
    means = np.stack([x[labels == c].mean(axis=0) for c in range(CLASSES)])
    tied = np.linalg.inv(np.cov((x - means[labels]).T, bias=True))
    whole = np.linalg.inv(np.cov(x.T, bias=True))
    nearest = np.min([np.einsum("ij,jk,ik->i", F - m, tied, F - m) for m in means], axis=0)
    away = F - x.mean(axis=0)
    expected = np.einsum("ij,jk,ik->i", away, whole, away) - nearest
    np.testing.assert_allclose(scores("rmds", TRAIN), expected, rtol=1e-4, atol=1e-4)


def test_every_number_has_a_range_also_where_a_detector_is_built_directly() -> None:
    for name in set(list_detectors()) - {"opengan"}:
        spec = get_spec(name)
        for key, value in spec.parameters.items():
            for wrong in (-1, True, float("nan")) if isinstance(value, int | float) else ():
                with pytest.raises(DataError) as caught:
                    spec.build(**{key: wrong})
                assert str(caught.value.where).endswith(f": {key}")


@pytest.mark.parametrize("name", ["react", "ash", "dice", "vim", "scale", "fdbd", "nci", "gradnorm"])
def test_those_that_need_a_head_say_so(name: str) -> None:
    with pytest.raises(DataError):
        fit(get_detector(name), TRAIN, None)
