"""OpenOOD's detectors written out naively, image by image, and the data on which they are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from loaders.harness.data.arrays import Array, Arrays, Head
from tests.loaders.harness.detectors.separable import head_of, images


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
