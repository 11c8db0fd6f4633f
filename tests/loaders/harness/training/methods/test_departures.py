"""Losses whose authors' code departs from their paper: both formulas, the parameter, and how far apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from loaders.harness.training.audit import audit_method
from loaders.harness.training.methods import Batch, get_method
from loaders.harness.training.methods.augmenting import join
from loaders.harness.training.methods.relabelling import cluster_weights, spread_labels
from loaders.harness.training.steps import mean_terms, sum_terms

from .oracles.embeddings import embed, kth, phi
from .oracles.formulas import beta, cross_entropy, log_sum_exp, mixed_cross_entropy, uniform_cross_entropy
from .oracles.heads import entropy
from .stand_ins import FixedOutputs, new_state

N, K, D = 12, 4, 4
RNG = np.random.default_rng(0)
LABELS, INDEX = np.arange(N) % K, np.arange(N)
FEATURES, LOGITS = RNG.normal(size=(4 * N, D)), 2 * RNG.normal(size=(2 * N, K))
LOGITS[N - 3 : N] /= 4  # uncertain outliers
PROTOTYPES = RNG.normal(size=(K, 128))
PROTOTYPES /= np.linalg.norm(PROTOTYPES, axis=1, keepdims=True)
QUEUE = RNG.normal(size=(K, 10, 128))
QUEUE /= np.linalg.norm(QUEUE, axis=2, keepdims=True)
CORRECT, PASSES = np.array([3, 5, 5, 9, 4, 6, 3, 3, 8, 7, 9, 5]), 9
EPOCHS = 20
Outcome = tuple[float, float, float]
"""Loss by the paper's formula, by that of the code, and how much greater the second is, in closed form."""


class Step:
    """A step on fixed outputs of a network: its loss, heads and random numbers."""

    def __init__(self, spec: str, *, rows: int, truth: Any = LABELS, **state: Any) -> None:
        torch.manual_seed(0)
        method = get_method(spec)
        logits, features = (torch.tensor(values[:rows], dtype=torch.float32) for values in (LOGITS, FEATURES))
        if rows > len(logits):
            logits = logits.repeat(2, 1)
        network: Any = FixedOutputs(method, logits, features)
        if hasattr(network.head, "prototypes"):
            network.head.prototypes.copy_(torch.tensor(PROTOTYPES))
        self.heads: dict[str, Any] = {
            name: {key: value.detach().double().numpy().copy() for key, value in head.state_dict().items()}
            for name, head in network.heads.items()
        }
        held = new_state(**{key: torch.tensor(value) for key, value in state.items()})
        held.epoch, held.epochs = PASSES, EPOCHS
        batch = Batch((torch.zeros(N, 3, 1, 1),), torch.tensor(truth), torch.tensor(INDEX))
        means = mean_terms(method, method.step(network, batch, held))
        self.loss, self.method = sum_terms(means).item(), method
        self.random = new_state().generator


def average(values: Any) -> float:
    values = list(values)
    return float(sum(values) / len(values))


def plain(rows: Any = range(N)) -> float:
    return average(cross_entropy(LOGITS[i], LABELS[i]) for i in rows)


def regmixup(step: Step) -> Outcome:
    """One mean over 2 n rows, instead of a mean of the images and a mean of their mixtures."""
    partners = torch.randperm(N, generator=step.random).tolist()
    share = beta(int(torch.randint(2**31, (1,), generator=step.random)), 10, 10)
    mixed = [mixed_cross_entropy(LOGITS[N + i], LABELS[i], LABELS[partners[i]], share) for i in range(N)]
    paper = plain() + average(mixed)
    code = (sum(cross_entropy(LOGITS[i], LABELS[i]) for i in range(N)) + sum(mixed)) / (2 * N)
    return paper, code, -paper / 2


def cider(step: Step) -> Outcome:
    """The compactness times tau over a base of .07."""
    prototypes, embeddings = PROTOTYPES.copy(), [embed(step.heads["head"], f) for f in FEATURES[:N]]
    for z, y in zip(embeddings, LABELS, strict=True):
        moved = 0.95 * prototypes[y] + 0.05 * z
        prototypes[y] = moved / np.linalg.norm(moved)
    compact = average(cross_entropy(prototypes @ z / 0.1, y) for z, y in zip(embeddings, LABELS, strict=True))
    disperse = average(
        math.log(average(math.exp(float(a @ b) / 0.1) for j, b in enumerate(prototypes) if j != i))
        for i, a in enumerate(prototypes)
    )
    weight, spread = (step.method.weight, 1.0) if step.method.name == "cider" else (1.0, 0.5)  # type: ignore[attr-defined]
    paper = weight * compact + spread * disperse
    code = weight * 0.1 / 0.07 * compact + spread * disperse
    return paper, code, weight * compact * (0.1 / 0.07 - 1)


def outliers_of(picked: Any, noise: Any, *, normalised: bool) -> list[Any]:
    """Of 20 draws per class around its 4 sparsest embeddings, the 5 with the farthest third neighbour."""
    outliers = []
    for members, picks, moves in zip(QUEUE, picked, noise, strict=True):
        sparse = sorted(sorted(range(10), key=lambda i: -kth(members[i], members, 4))[:4])
        draws = [members[sparse[p]] + math.sqrt(0.1) * e for p, e in zip(picks, moves, strict=True)]
        seen = [v / np.linalg.norm(v) if normalised else v for v in draws]
        far = sorted(range(20), key=lambda i: -kth(seen[i], members, 3))[:5]
        outliers += [draws[i] for i in far]
    return outliers


def npos(step: Step) -> Outcome:
    """CIDER's departure, other outliers, and one mean over embeddings and outliers."""
    contrast, head = cider(step), step.heads["phi"]
    picked = torch.randint(4, (K, 20), generator=step.random).numpy()
    noise = torch.randn(K, 20, 128, generator=step.random).double().numpy()
    inside = [math.log1p(math.exp(-phi(head, embed(step.heads["head"], f)))) for f in FEATURES[:N]]
    outside, normalised = (
        [math.log1p(math.exp(phi(head, v))) for v in outliers_of(picked, noise, normalised=flag)]
        for flag in (False, True)
    )
    together = average([*inside, *normalised])
    apart = contrast[2] + 0.1 * (together - average(inside) - average(outside))
    paper = contrast[0] + 0.1 * (average(inside) + average(outside))
    return paper, contrast[1] + 0.1 * together, apart


def mcd(step: Step) -> Outcome:
    """The hinge of the outliers' mean (paper and code), against a hinge per image: the greater."""
    head, missing = step.heads["second"], []
    second = [head["weight"] @ f + head["bias"] for f in FEATURES[:N]]
    for i in range(N // 2, N):
        missing.append(entropy(second[i]) - entropy(LOGITS[i]))
    classes = plain(range(N // 2)) + average(cross_entropy(second[i], LABELS[i]) for i in range(N // 2))
    above = average(max(0.0, -v) for v in missing)
    mean = max(0.0, average(missing))
    assert mean > 0 < above
    return classes + mean, classes + average(max(0.0, v) for v in missing), above


def csi(step: Step) -> Outcome:
    """The mask counts the anchor, whose share of the softmax is 1e-8: with P positives, P + 1 terms."""
    head, embeddings = step.heads["projection"], []
    for f in FEATURES:
        z = head["2.weight"] @ np.maximum(head["0.weight"] @ f + head["0.bias"], 0) + head["2.bias"]
        embeddings.append(z / np.linalg.norm(z))
    groups, paper, code = [(LABELS[i % N], i // N) for i in range(4 * N)], [], []
    for i, z in enumerate(embeddings):
        powers = [0.0 if a == i else math.exp(float(z @ other) / 0.5) for a, other in enumerate(embeddings)]
        shares = [p / sum(powers) for p in powers]
        same = [a for a in range(4 * N) if groups[a] == groups[i]]
        paper.append(average(-math.log(shares[a]) for a in same if a != i))
        code.append(average(-math.log(shares[a] + 1e-8) for a in same))
    positives = N // K - 1
    return average(paper), average(code), (-math.log(1e-8) - average(paper)) / (positives + 1)


def udg(step: Step) -> Outcome:
    """Clusters weigh size^-1/2, with mean 1 over the clusters."""
    head = step.heads["cluster"]
    losses = [cross_entropy(head["weight"] @ FEATURES[i] + head["bias"], CLUSTERS[i]) for i in range(N)]
    classes = plain(range(N // 2)) + 0.5 * average(uniform_cross_entropy(z) for z in LOGITS[N // 2 : N])
    apart = 0.1 * average((w - 1) * loss for w, loss in zip(WEIGHTS, losses, strict=True))
    code = classes + 0.1 * average(w * loss for w, loss in zip(WEIGHTS, losses, strict=True))
    return classes + 0.1 * average(losses), code, apart


def ranking(history: Any, *, ties: bool = False) -> float:
    sure, total = [math.exp(max(z) - log_sum_exp(z)) for z in LOGITS[:N]], 0.0
    for i in range(N):
        j = (i + 1) % N
        sign = np.sign(history[i] - history[j])
        value = max(0.0, abs(history[i] - history[j]) - sign * (sure[i] - sure[j]))
        total += abs(sure[i] - sure[j]) if ties and not sign else value
    return total / N


def crl(step: Step) -> Outcome:
    """Histories run from the least of all images: every margin is wider by n / (n - least)."""
    paper = ranking(CORRECT / PASSES)
    code = ranking((CORRECT - CORRECT.min()) / (PASSES - CORRECT.min()))
    return plain() + paper, plain() + code, code - paper


def crl_of_kim(step: Step) -> Outcome:
    """Histories are shares of all epochs: margins are narrower; equal histories cost their difference."""
    paper, code = ranking(CORRECT / PASSES), ranking(CORRECT / EPOCHS, ties=True)
    return plain() + paper, plain() + code, code - paper


def mixoe(step: Step) -> Outcome:
    """The code's weight of the second part, beta, is the second parameter of Beta in OpenOOD."""
    seed, half = int(torch.randint(2**31, (1,), generator=step.random)), range(N // 2)

    def mixed(share: float) -> float:
        rows = LOGITS[N // 2 : N]
        return average(
            share * cross_entropy(rows[i], LABELS[i]) + (1 - share) * uniform_cross_entropy(rows[i])
            for i in half
        )

    paper, openood = 5 * mixed(beta(seed, 2, 2)), mixed(beta(seed, 0.1, 1))
    return plain(half) + paper, plain(half) + openood, openood - paper


def vos(step: Step) -> Outcome:
    """A linear phi, and one mean: less than both means by the shares of the other set."""
    random, queue = step.random, QUEUE[:, :, :D]
    normals = torch.randn(K, D, generator=random, dtype=torch.float64).numpy()
    uniforms = torch.rand(K, generator=random, dtype=torch.float64).numpy()
    means = queue.mean(1)
    centred = (queue - means[:, None]).reshape(-1, D)
    factor = np.linalg.cholesky(centred.T @ centred / len(centred) + 1e-4 * np.eye(D))
    radii = np.sqrt(chi2.ppf(uniforms ** (1 / 10_000), D))
    virtual = means + (radii[:, None] * normals / np.linalg.norm(normals, axis=1, keepdims=True)) @ factor.T
    head = step.heads["uncertainty"]

    def parts(uncertainty: Callable[[float], float]) -> tuple[list[float], list[float]]:
        energies = [[-log_sum_exp(z + head["log_weights"]) for z in rows] for rows in (LOGITS[:N], virtual)]
        inside = [math.log1p(math.exp(uncertainty(e))) for e in energies[0]]
        return inside, [math.log1p(math.exp(-uncertainty(e))) for e in energies[1]]

    if "phi.2.weight" in head:
        inside, outside = parts(lambda e: phi(head, np.array([e]), "phi."))
    else:
        inside, outside = parts(lambda e: float(head["phi.weight"][0, 0]) * e + float(head["phi.bias"][0]))
    separate, together = average(inside) + average(outside), average([*inside, *outside])
    less = (K * average(inside) + N * average(outside)) / (N + K)
    return plain() + 0.1 * separate, plain() + 0.1 * together, -0.1 * less


HALF = np.where(INDEX < N // 2, LABELS, -1)
CLUSTERS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 4])  # the fourth is empty
SIZES = np.array([5, 3, 3, 1])
WEIGHTS = [(SIZES**-0.5 / (SIZES**-0.5).mean())[min(c, 3)] for c in CLUSTERS]
HISTORY = {"rows": N, "correct": CORRECT.astype(np.float32), "passes": np.full(N, float(PASSES), np.float32)}
SMALL = "neighbours=3,boundary=4,draws=20,keep=5,start=0"
PUSHED = {"rows": N, "pushed": np.full(K, 10)}
DEPARTURES: dict[str, tuple[str, str, Callable[[Step], Outcome], dict[str, Any]]] = {
    "RegMixup": ("regmixup", "regmixup[formula=code]", regmixup, {"rows": 2 * N}),
    "CIDER": ("cider", "cider[formula=code]", cider, {"rows": N}),
    "NPOS": (
        f"npos[{SMALL}]",
        f"npos[{SMALL},formula=code]",
        npos,
        {**PUSHED, "queue": QUEUE.astype(np.float32)},
    ),
    "VOS": (
        "vos[start=0]",
        "vos[start=0,formula=code]",
        vos,
        {**PUSHED, "queue": QUEUE[:, :, :D].astype(np.float32)},
    ),
    "MCD": (
        "mcd[start=0,margin=0]",
        "mcd[start=0,margin=0,hinge=image]",
        mcd,
        {"rows": N, "truth": HALF},
    ),
    "CSI": ("csi", "csi[formula=code]", csi, {"rows": 4 * N}),
    "UDG": (
        "udg[clusters=5]",
        "udg[clusters=5,formula=code]",
        udg,
        {"rows": N, "clusters": CLUSTERS, "labels": HALF, "weights": np.array(WEIGHTS, np.float32)},
    ),
    "CRL": ("crl", "crl[formula=code]", crl, HISTORY),
    "CRL of Kim et al.": ("crl", "crl[formula=kim]", crl_of_kim, HISTORY),
    "MixOE": (
        "mixoe[cut=false]",
        "mixoe[cut=false,a=0.1,b=1,weight=1]",
        mixoe,
        {"rows": N, "truth": HALF},
    ),
}


@pytest.mark.parametrize(("paper", "code", "formulas", "inputs"), DEPARTURES.values(), ids=DEPARTURES)
def test_a_parameter_selects_the_formula_of_the_paper_or_of_the_code(
    paper: str, code: str, formulas: Callable[[Step], Outcome], inputs: dict[str, Any]
) -> None:
    by_paper, by_code = Step(paper, **inputs), Step(code, **inputs)
    assert by_paper.loss == pytest.approx(formulas(by_paper)[0], rel=1e-4)
    expected = formulas(by_code)
    assert by_code.loss == pytest.approx(expected[1], rel=1e-4)
    assert expected[1] - expected[0] == pytest.approx(expected[2], abs=1e-5)
    assert abs(expected[2]) > 0.01


@pytest.mark.parametrize("spec", [code for _, code, *_ in DEPARTURES.values()])
def test_the_formulas_of_the_code_train_what_they_claim(spec: str) -> None:
    name, _, options = spec.rstrip("]").partition("[")
    kept = [option for option in options.split(",") if option.startswith(("formula", "hinge"))]
    if kept:
        assert audit_method(f"{name}[{','.join(kept)}]").failures == ()


def test_clusters_weigh_less_the_more_images_they_have_and_earlier_labels_count() -> None:
    np.testing.assert_allclose(cluster_weights(torch.tensor(CLUSTERS)), WEIGHTS, rtol=1e-6)
    labels, earlier = torch.tensor([0, 0, -1, -1, 1, -1]), torch.tensor([0, 0, 0, -1, 1, 1])
    clusters = torch.tensor([0, 0, 0, 0, 1, 1])
    assert spread_labels(labels, clusters, 2, 0.75).tolist() == [0, 0, -1, -1, 1, -1]
    assert spread_labels(labels, clusters, 2, 0.75, counted=earlier).tolist() == [0, 0, 0, 0, 1, 1]


def test_a_black_partner_of_pixmix_makes_a_pixel_white_where_its_power_is_negative() -> None:
    """The authors clip 2 x partner at 1e-37; a clip at 1/255, of one grey level, leaves most pixels grey."""
    grey, black = torch.full((400, 1, 1, 1), 0.1), torch.zeros(400, 1, 1, 1)
    values, rng = join(grey, black, 3.0, np.random.default_rng(0)).flatten().numpy(), np.random.default_rng(0)
    _, _, other = rng.beta(3, 1, 400), (small := rng.beta(1, 3, 400)), rng.beta(1, 3, 400)
    crossed, added = rng.random(400) < 0.5, rng.random(400) < 0.5
    rows = np.flatnonzero(crossed & ~added)
    by_code, clipped = (
        np.minimum(0.2 ** (1 + other[rows]) * least ** -small[rows] / 2, 1) for least in (1e-37, 1 / 255)
    )
    np.testing.assert_allclose(values[rows], by_code, rtol=1e-3)
    assert (by_code == 1).mean() > 0.8 > 0.3 > (clipped == 1).mean()
