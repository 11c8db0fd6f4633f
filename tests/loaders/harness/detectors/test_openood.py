"""Detectors against what OpenOOD v1.5 computes, written out naively: image by image, from reading its code.

OpenOOD itself is not installed here: what a test calls OpenOOD's is our reading of the commit that it or
docs/detectors.md names.

Where they differ, docs/detectors.md says why, and a test here or beside it holds ours to the paper's formula.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from loaders.harness.arrays import Array, Arrays, Head
from loaders.harness.detectors import get_detector, list_detectors, parse_detectors
from loaders.harness.evaluation.scoring import confidence, fit
from tests.loaders.harness.detectors.separable import head_of, images
from wordnet_splits.metrics import auroc

DOCS = Path(__file__).resolve().parents[4] / "docs"


class World(NamedTuple):
    """What a detector learns from, and the images that it scores."""

    train: Arrays
    val: Arrays
    known: Arrays
    unknown: Arrays
    head: Head

    def learn(self, fit_on: Any) -> Arrays | None:
        return {"train": self.train, "val": self.val}.get(str(fit_on))


def at_random(n: int, seed: int, head: Head, *, scale: float = 1.0) -> Arrays:
    """Features without clusters, half of them 0 as after a ReLU; labels are often not the predicted class."""
    rng = np.random.default_rng(seed)
    features = np.maximum(scale * rng.normal(size=(n, head.weight.shape[1])), 0).astype(np.float32)
    logits = features @ head.weight.T + head.bias
    labels = (logits + rng.normal(size=logits.shape)).argmax(axis=1)
    return Arrays({"features": features, "logits": logits, "labels": labels, ODIN: 1.1 * logits})


ODIN = "odin[T=1000,eps=0.0014]/logits"


def clusters() -> World:
    return World(
        images(400, seed=1),
        images(120, seed=2),
        images(60, seed=3),
        images(60, seed=4, unknown=True),
        head_of(),
    )


def noise() -> World:
    rng = np.random.default_rng(9)
    head = Head(rng.normal(size=(5, 24)).astype(np.float32), rng.normal(size=5).astype(np.float32))
    known, unknown = at_random(60, 3, head), at_random(60, 4, head, scale=0.7)
    return World(at_random(400, 1, head), at_random(120, 2, head), known, unknown, head)


BUILT_IN = list_detectors()
WORLDS = {"clusters": clusters(), "noise": noise()}


def rows(data: Arrays, name: str) -> Array:
    return np.asarray(data[name], dtype=np.float64)


def softmax(z: Array) -> Array:
    e = np.exp(z - z.max())
    return np.asarray(e / e.sum())


def energy(z: Array) -> float:
    return float(np.log(np.exp(z - z.max()).sum()) + z.max())


Score = Callable[[Array, Array], float]
"""From the features and logits of one image to OpenOOD's confidence."""


def of_logits(score: Callable[[Array], float]) -> Callable[[World], Score]:
    return lambda world: lambda f, z: score(z)


def gen(gamma: float, m: int) -> Callable[[Array], float]:
    def score(z: Array) -> float:
        p = np.sort(softmax(z))[-m:]
        return -float((p**gamma * (1 - p) ** gamma).sum())

    return score


def klm(world: World) -> Score:
    p = [softmax(z) for z in rows(world.val, "logits")]
    said = [int(one.argmax()) for one in p]
    means = [
        np.mean([one for one, k in zip(p, said, strict=True) if k == c], axis=0) for c in sorted(set(said))
    ]
    return lambda f, z: -min(float((softmax(z) * np.log(softmax(z) / mean)).sum()) for mean in means)


def gradnorm(world: World) -> Score:
    """The gradient by every weight of K times the cross-entropy to the uniform distribution."""

    def score(f: Array, z: Array) -> float:
        return float(np.abs(np.outer(len(z) * softmax(z) - 1, f)).sum())

    return score


def class_features(world: World) -> tuple[list[Array], Array, Array]:
    x, labels = rows(world.train, "features"), np.asarray(world.train["labels"])
    means = [x[labels == c].mean(axis=0) for c in range(labels.max() + 1)]
    return means, np.linalg.inv(np.cov(np.stack([r - means[c] for r, c in zip(x, labels, strict=True)]).T)), x


def mds(world: World) -> Score:
    means, precision, _ = class_features(world)
    return lambda f, z: max(-(f - m) @ precision @ (f - m) for m in means)


def rmds(world: World) -> Score:
    means, precision, x = class_features(world)
    n, whole = len(x), np.linalg.inv(np.cov(x.T, bias=True))
    precision = precision * n / (n - 1)  # their covariance is divided by n

    def score(f: Array, z: Array) -> float:
        background = -(f - x.mean(axis=0)) @ whole @ (f - x.mean(axis=0))
        return float(max(-(f - m) @ precision @ (f - m) - background for m in means))

    return score


def normalised(f: Array) -> Array:
    return np.asarray(f / np.linalg.norm(f) + 1e-10)


def knn(k: int) -> Callable[[World], Score]:
    def of(world: World) -> Score:
        bank = np.stack([normalised(f) for f in rows(world.train, "features")])
        return lambda f, z: -float(np.sort(((normalised(f) - bank) ** 2).sum(axis=1))[k - 1])

    return of


def nnguide(k: int) -> Callable[[World], Score]:
    """With the share of the training set that it searches at 1."""

    def of(world: World) -> Score:
        pairs = zip(rows(world.train, "features"), rows(world.train, "logits"), strict=True)
        bank = np.stack([normalised(f) * energy(z) for f, z in pairs])
        return lambda f, z: float(np.sort(bank @ normalised(f))[-k:].mean()) * energy(z)

    return of


def she(world: World) -> Score:
    x, labels = rows(world.train, "features"), np.asarray(world.train["labels"])
    right = rows(world.train, "logits").argmax(axis=1) == labels
    patterns = [x[right & (labels == c)].mean(axis=0) for c in range(labels.max() + 1)]
    return lambda f, z: float((f * patterns[z.argmax()]).sum())


def fdbd(world: World) -> Score:
    w, mean = world.head.weight.astype(np.float64), rows(world.train, "features").mean(axis=0)

    def score(f: Array, z: Array) -> float:
        top = int(z.argmax())
        apart = [np.linalg.norm(w[j] - w[top]) if j != top else 1.0 for j in range(len(z))]
        return float((np.abs(z - z[top]) / apart).sum() / np.linalg.norm(f - mean))

    return score


def nci(alpha: float) -> Callable[[World], Score]:
    def of(world: World) -> Score:
        mean = rows(world.train, "features").mean(axis=0)

        def score(f: Array, z: Array) -> float:
            away = f - mean
            return float(
                world.head.weight[z.argmax()] @ away / np.linalg.norm(away) + alpha * np.abs(f).sum()
            )

        return score

    return of


def vim(dim: int) -> Callable[[World], Score]:
    def of(world: World) -> Score:
        u = -np.linalg.pinv(world.head.weight.astype(np.float64)) @ world.head.bias
        x = rows(world.train, "features") - u
        values, vectors = np.linalg.eigh(x.T @ x / len(x))
        null = vectors[:, np.argsort(-values)[dim:]]
        alpha = rows(world.train, "logits").max(axis=1).mean() / np.linalg.norm(x @ null, axis=1).mean()
        return lambda f, z: energy(z) - float(np.linalg.norm((f - u) @ null) * alpha)

    return of


def behind(world: World, f: Array) -> float:
    return energy(world.head.weight.astype(np.float64) @ f + world.head.bias)


def react(percentile: float) -> Callable[[World], Score]:
    def of(world: World) -> Score:
        cut = np.percentile(rows(world.val, "features").flatten(), percentile)
        return lambda f, z: behind(world, np.minimum(f, cut))

    return of


def shaped(percentile: float, shape: Callable[[Array, Array], Array]) -> Callable[[World], Score]:
    """``shape`` gets the features, and those features with all but the k greatest at 0."""

    def of(world: World) -> Score:
        def score(f: Array, z: Array) -> float:
            k = len(f) - int(np.round(len(f) * percentile / 100))
            pruned = np.zeros_like(f)
            top = np.argsort(-f, kind="stable")[:k]
            pruned[top] = f[top]
            return behind(world, shape(f, pruned))

        return score

    return of


def binarised(f: Array, pruned: Array) -> Array:
    return np.where(pruned > 0, f.sum() / (pruned > 0).sum(), 0)


def dice(p: float) -> Callable[[World], Score]:
    def of(world: World) -> Score:
        contribution = rows(world.train, "features").mean(axis=0)[None] * world.head.weight
        masked = world.head.weight * (contribution > np.percentile(contribution, p))
        return lambda f, z: energy((f[None] * masked).sum(axis=1) + world.head.bias)

    return of


def weibull(tail: Array) -> Callable[[float], float]:
    """LibMR's fit: of distances moved so that the least is 10,000; the root of the likelihood's slope."""
    x = tail + 10_000 - tail.min()
    unit, mean = x / x.max(), np.log(x / x.max()).mean()

    def slope(k: float) -> float:
        return float((unit**k @ np.log(unit)) / (unit**k).sum() - 1 / k - mean)

    k = brentq(slope, 1.0, 1e9, xtol=1e-12, rtol=1e-14)
    scale = x.max() * np.mean(unit**k) ** (1 / k)
    return lambda d: float(-np.expm1(-(((d + 10_000 - tail.min()) / scale) ** k)))


def openmax(world: World, alpha: int = 3, tail: int = 20) -> Callable[[Array], Array]:
    """Probabilities of the classes and, last, of the unknown one: distances are Euclidean, nothing else."""
    z, labels = rows(world.train, "logits"), np.asarray(world.train["labels"])
    classes = range(z.shape[1])
    own = [z[(labels == c) & (z.argmax(axis=1) == c)] for c in classes]
    means = [m.mean(axis=0) for m in own]
    far = [weibull(np.sort(np.linalg.norm(own[c] - means[c], axis=1))[-tail:]) for c in classes]

    def probabilities(z: Array) -> Array:
        revised = z.copy()
        for rank, c in enumerate(np.argsort(z)[::-1][:alpha]):
            revised[c] *= 1 - far[c](float(np.linalg.norm(z - means[c]))) * (alpha - rank) / alpha
        return softmax(np.append(revised, (z - revised).sum()))

    return probabilities


def known_share(world: World) -> Score:
    of = openmax(world)
    return lambda f, z: -float(of(z)[-1])


ORACLES: dict[str, Callable[[World], Score]] = {
    "msp": of_logits(lambda z: float(softmax(z).max())),
    "mls": of_logits(lambda z: float(z.max())),
    "energy": of_logits(energy),
    "energy[T=10]": of_logits(lambda z: 10 * energy(z / 10)),
    "odin": of_logits(lambda z: float(softmax(z / 1000).max())),
    "gen": of_logits(gen(0.1, 100)),
    "gen[gamma=0.5,M=3]": of_logits(gen(0.5, 3)),
    "klm": klm,
    "gradnorm": gradnorm,
    "mds": mds,
    "rmds": rmds,
    "knn": knn(50),
    "knn[k=7]": knn(7),
    "nnguide[k=30]": nnguide(30),
    "she": she,
    "fdbd": fdbd,
    "nci[alpha=0.0001]": nci(0.0001),
    "vim[dim=10]": vim(10),
    "react": react(90),
    "react[percentile=99]": react(99),
    "ash": shaped(90, binarised),
    "ash[variant=p,percentile=75]": shaped(75, lambda f, pruned: pruned),
    "ash[variant=s,percentile=65]": shaped(65, lambda f, pruned: pruned * np.exp(f.sum() / pruned.sum())),
    "scale": shaped(85, lambda f, pruned: f * np.exp(f.sum() / pruned.sum())),
    "dice": dice(90),
    "dice[p=70]": dice(70),
    "openmax[distance=euclidean]": known_share,
}


def theirs(world: World, data: Arrays, of: Callable[[World], Score], logits: str = "logits") -> Array:
    score = of(world)
    return np.array([score(f, z) for f, z in zip(rows(data, "features"), rows(data, logits), strict=True)])


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("spec", ORACLES)
def test_the_same_ranking_and_auroc(spec: str, world: str) -> None:
    data = WORLDS[world]
    (chosen,) = parse_detectors(spec)
    fitted = fit(chosen, data.learn(chosen.spec.fit_on), data.head)
    ours = [confidence(fitted, part) for part in (data.known, data.unknown)]
    logits = ODIN if spec == "odin" else "logits"
    reference = [theirs(data, part, ORACLES[spec], logits) for part in (data.known, data.unknown)]
    ranks = stats.spearmanr(np.concatenate(ours), np.concatenate(reference)).statistic
    assert ranks == pytest.approx(1, abs=1e-6)
    assert auroc(*ours) == pytest.approx(auroc(*reference), abs=1e-6)


def test_the_data_tell_settings_of_one_detector_apart() -> None:
    """A test of the same ranking says nothing where every setting gives that ranking."""
    by_detector: dict[str, list[Array]] = {}
    data = WORLDS["noise"]
    for spec, oracle in ORACLES.items():
        by_detector.setdefault(spec.partition("[")[0], []).append(theirs(data, data.known, oracle))
    by_detector["vim"].append(theirs(data, data.known, vim(20)))  # v1.5 scores every dim as the first
    several = {name: scores for name, scores in by_detector.items() if len(scores) > 1}
    assert {"vim", "knn", "react", "ash", "dice", "energy", "gen"} <= set(several)
    for name, scores in several.items():
        for a, b in combinations(scores, 2):
            assert stats.spearmanr(a, b).statistic < 0.9999, name


def test_gram_is_the_papers_sum_of_deviations_in_units_of_validation_images() -> None:
    """Sastry and Oore: channel by channel and power by power."""
    world, name = WORLDS["clusters"], "gram[of=stages,powers=5]/early"
    seen, said = rows(world.train, name), rows(world.train, "logits").argmax(axis=1)

    def deviation(image: Array, c: int) -> float:
        total = 0.0
        for power in range(image.shape[0]):
            for channel in range(image.shape[1]):
                own = seen[said == c, power, channel]
                low, high, value = own.min(), own.max(), image[power, channel]
                total += (low - value) / abs(low + 1e-6) if value < low else 0.0
                total += (value - high) / abs(high + 1e-6) if value > high else 0.0
        return total

    def of(data: Arrays) -> list[float]:
        classes = rows(data, "logits").argmax(axis=1)
        return [deviation(image, c) for image, c in zip(rows(data, name), classes, strict=True)]

    some = world.val.rows(0, 15)
    fitted = fit(get_detector("gram"), {"train": world.train, "val": some})
    expected = [-d / np.mean(of(some)) for d in of(world.unknown.rows(0, 20))]
    np.testing.assert_allclose(confidence(fitted, world.unknown.rows(0, 20)), expected, rtol=1e-3)


def test_openoods_ensemble_of_layers_is_ours_of_one() -> None:
    """Its configuration has one layer of weight 1, and so is that layer's Mahalanobis distance."""
    world, name = WORLDS["clusters"], "stages[of=stages,statistic=mean]/early"

    def one(data: Arrays) -> Arrays:
        name_of_one = "stages[of=early,statistic=mean]/early"
        return Arrays({name_of_one: data[name], "labels": data["labels"]})

    (chosen,) = parse_detectors("mdsens[layers=early,eps=0]")
    fitted = fit(chosen, {"train": one(world.train), "val": one(world.val)}).calibrated(one(world.val))
    ours = confidence(fitted, one(world.known))
    features = [data.replace(features=np.asarray(data[name])) for data in (world.train, world.known)]
    reference = theirs(world._replace(train=features[0]), features[1], mds)
    assert stats.spearmanr(ours, reference).statistic == pytest.approx(1, abs=1e-6)


def test_openoods_vra_raises_what_is_low_and_the_papers_sets_it_to_zero() -> None:
    """Xu et al., VRA-P: 0 below the lower threshold, the upper one above."""
    world = WORLDS["noise"]
    low, high = np.percentile(rows(world.val, "features"), [60, 95])
    assert low > 0
    features = rows(world.known, "features")
    paper = [behind(world, np.where(f < low, 0, np.minimum(f, high))) for f in features]
    openood = [behind(world, np.clip(f, low, high)) for f in features]
    ours = confidence(fit(get_detector("vra"), world.val, world.head), world.known)
    np.testing.assert_allclose(ours, paper, rtol=1e-5)
    assert stats.spearmanr(ours, openood).statistic < 0.999


def test_openood_averages_the_logits_of_several_models_and_the_papers_average_their_softmax() -> None:
    """Lakshminarayanan et al., section 2.4; Gal and Ghahramani of several passes."""
    rng = np.random.default_rng(0)
    models = [3 * rng.normal(size=(60, 4)).astype(np.float32) for _ in range(3)]
    paper = [np.mean([softmax(z[i].astype(float)) for z in models], axis=0).max() for i in range(60)]
    openood = [softmax(np.mean([z[i] for z in models], axis=0)).max() for i in range(60)]
    ours = confidence(fit(get_detector("ensemble"), None, [None] * 3), [Arrays.of(logits=z) for z in models])
    np.testing.assert_allclose(np.exp(ours), paper, rtol=1e-5)
    assert stats.spearmanr(ours, openood).statistic < 0.95


SETTINGS: Mapping[str, Mapping[str, object]] = {
    "openmax": {"alpha": 3, "tail": 20, "distance": "euclidean"},
    "odin": {"T": 1000.0, "eps": 0.0014},
    "mdsens": {"eps": 0.0014},
    "gram": {"powers": 5},
    "energy": {"T": 1.0},
    "react": {"percentile": 90.0, "threshold": 0.0},
    "vim": {"dim": 256},
    "knn": {"k": 50},
    "dice": {"p": 90.0},
    "rankfeat": {"T": 1.0},
    "ash": {"percentile": 90.0, "variant": "b"},
}
"""configs/postprocessors/*.yml, and of OpenMax, which has no such values there, its code."""


def test_the_preset_has_openoods_values() -> None:
    chosen = {one.spec.name: one for one in parse_detectors("preset:openood")}
    for name, values in SETTINGS.items():
        assert {key: chosen[name].params[key] for key in values} == values


def test_the_page_has_a_line_for_every_detector() -> None:
    page = (DOCS / "detectors.md").read_text(encoding="utf-8")
    table = page.partition("| detector |")[2].partition("\n\n")[0]
    first = [line.split("|")[1] for line in table.splitlines()[2:]]
    listed = [name for cell in first for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(listed) == sorted(BUILT_IN)
