"""Detectors against those of pytorch-ood, whose scores are higher for out-of-distribution images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.detectors import parse_detectors
from loaders.harness.detectors.pytorch_ood import pytorch_ood_specs
from loaders.harness.evaluation.scoring import confidence, fit
from loaders.harness.extraction.extractor import BenchmarkImages, Extractor
from loaders.harness.extraction.outputs import Store
from loaders.harness.models.loading import load_model
from tests.imported import Imported
from tests.loaders.harness.detectors.separable import CLASSES, head_of, images, reordered
from tests.loaders.harness.models.networks import small_network
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics import auroc

theirs = Imported("pytorch_ood.detector", "pytorch-ood is not installed")

TRAIN, KNOWN, UNKNOWN = images(1600, seed=1), images(300, seed=3), images(300, seed=4, unknown=True)
HEAD = head_of()
LABELS = np.where(np.arange(120) % 10, np.arange(120) % CLASSES, 0)  # some are wrong, so that T is not 0
VAL = images(120, seed=2).replace(labels=LABELS)


def tensor(data: Arrays, name: str) -> Any:
    return torch.from_numpy(np.array(data[name]))


def logits(detector: Any) -> Callable[[Arrays], Array]:
    return lambda data: -detector.predict_logits(tensor(data, "logits").double()).detach().numpy()


def features(detector: Any) -> Callable[[Arrays], Array]:
    learned = detector.fit_features(tensor(TRAIN, "features"), tensor(TRAIN, "labels"))
    return lambda data: -learned.predict_features(tensor(data, "features")).numpy()


def maps(data: Arrays, name: str = "features") -> Any:
    return tensor(data, name)[:, :, None, None]


def linear() -> Any:
    head = torch.nn.Linear(*HEAD.weight.shape[::-1])
    head.weight.data, head.bias.data = torch.from_numpy(HEAD.weight), torch.from_numpy(HEAD.bias)
    return head.eval()


def shaped(kind: Any, fit_on: Arrays | None = None, **options: Any) -> Callable[[Arrays], Array]:
    """One that changes maps of 1 x 1 before the head."""
    detector = kind(None, lambda x: linear()(x.flatten(1)), **options)
    if fit_on is not None:
        detector.fit_feature_maps(maps(fit_on), tensor(fit_on, "labels"))
    return lambda data: -detector.predict_feature_maps(maps(data)).detach().numpy()


def klm() -> Callable[[Arrays], Array]:
    detector = theirs.KLMatching(None).fit_logits(tensor(VAL, "logits").double())
    return lambda data: -detector.predict_logits(tensor(data, "logits").double()).numpy()


def openmax(train: Arrays = TRAIN, **options: Any) -> Callable[[Arrays], Array]:
    detector = theirs.OpenMax(None, **options)
    detector.fit_logits(tensor(train, "logits").double(), tensor(train, "labels"))
    return lambda data: -detector.predict_logits(tensor(data, "logits").double()).numpy()


def gradnorm() -> Callable[[Arrays], Array]:
    detector = theirs.GradNorm(linear(), param_filter=lambda name: name == "weight")
    return lambda data: -detector.predict(tensor(data, "features")).detach().numpy()


WEIGHTS = {"w": torch.from_numpy(np.array(HEAD.weight)), "b": torch.from_numpy(np.array(HEAD.bias))}

PAIRS: dict[str, Callable[[], Callable[[Arrays], Array]]] = {
    "msp": lambda: logits(theirs.MaxSoftmax(None)),
    "ts[T=10]": lambda: logits(theirs.MaxSoftmax(None, t=10)),
    "mls": lambda: logits(theirs.MaxLogit(None)),
    "entropy": lambda: logits(theirs.Entropy(None)),
    "energy": lambda: logits(theirs.EnergyBased(None)),
    "energy[T=5]": lambda: logits(theirs.EnergyBased(None, t=5)),
    "knn[k=20]": lambda: features(theirs.KNN(None, k=20)),
    "mahalanobis": lambda: features(theirs.Mahalanobis(None)),
    "rmds": lambda: features(theirs.RMD(None)),
    "nnguide[k=20]": lambda: features(theirs.NNGuide(None, linear(), k=20)),
    "she": lambda: features(theirs.SHE(None, linear())),
    "fdbd": lambda: features(theirs.fDBD(None, linear())),
    "nci[alpha=0]": lambda: features(theirs.NCI(None, linear())),
    "nci[alpha=0.05]": lambda: features(theirs.NCI(None, linear(), alpha=0.05)),
    "vim[dim=10]": lambda: features(theirs.ViM(None, d=10, **WEIGHTS)),
    "vim[dim=30]": lambda: features(theirs.ViM(None, d=30, **WEIGHTS)),
    "vim": lambda: features(theirs.ViM(None, d=256, **WEIGHTS)),  # wider than the features: half of them
    "dice[p=30]": lambda: features(theirs.DICE(None, p=0.3, **WEIGHTS)),
    "dice": lambda: features(theirs.DICE(None, p=0.9, **WEIGHTS)),
    "react": lambda: shaped(theirs.ReAct, VAL, percentile=0.9),
    "react[threshold=4]": lambda: shaped(theirs.ReAct, threshold=4),
    "ash": lambda: shaped(theirs.ASH, variant="ash-b", percentile=0.9),
    "ash[variant=s,percentile=70]": lambda: shaped(theirs.ASH, variant="ash-s", percentile=0.7),
    "ash[variant=p,percentile=80]": lambda: shaped(theirs.ASH, variant="ash-p", percentile=0.8),
    "scale": lambda: shaped(theirs.SCALE, percentile=0.85),
    "gen[M=4]": lambda: logits(theirs.GEN(None, gamma=0.1, M=4)),
    "gen[gamma=0.5,M=2]": lambda: logits(theirs.GEN(None, gamma=0.5, M=2)),
    "klm": klm,
    "gradnorm": gradnorm,
    "openmax[weight=1]": lambda: openmax(alpha=3, tailsize=20, euclid_weight=0.5),
    "openmax[alpha=10,tail=30,weight=3]": lambda: openmax(alpha=10, tailsize=30, euclid_weight=0.75),
}


ROUGH = ("vim[dim=30]", "openmax")
"""Theirs of few digits: a small residual in float32, and a search for a shape that stops early."""


@pytest.mark.parametrize("spec", PAIRS)
def test_the_same_ranking_and_auroc(spec: str) -> None:
    (chosen,) = parse_detectors(spec)
    fitted = fit(chosen, {"train": TRAIN, "val": VAL, None: None}[chosen.spec.fit_on], HEAD)
    other = PAIRS[spec]()
    ours = [confidence(fitted, data) for data in (KNOWN, UNKNOWN)]
    reference = [other(data) for data in (KNOWN, UNKNOWN)]
    ranks = stats.spearmanr(np.concatenate(ours), np.concatenate(reference)).statistic
    assert ranks == pytest.approx(1, abs=1e-5)
    assert auroc(*ours) == pytest.approx(auroc(*reference), abs=1e-4 if spec.startswith(ROUGH) else 1e-6)


def test_openmax_is_theirs_fitted_on_the_rightly_predicted_images() -> None:
    """Theirs fits all training images, so that at an accuracy below 1 the rankings differ."""
    labels = np.where(np.arange(TRAIN.n) % 3, TRAIN["labels"], (np.asarray(TRAIN["labels"]) + 1) % CLASSES)
    train = TRAIN.replace(labels=labels)
    right = np.flatnonzero(np.asarray(train["logits"]).argmax(axis=1) == labels)
    assert len(right) / train.n == pytest.approx(2 / 3, abs=0.01)
    (chosen,) = parse_detectors("openmax[weight=1]")
    fitted = fit(chosen, train, HEAD)
    ours = np.concatenate([confidence(fitted, data) for data in (KNOWN, UNKNOWN)])

    def correlation(fitted_on: Arrays) -> float:
        other = openmax(fitted_on, alpha=3, tailsize=20, euclid_weight=0.5)
        reference = np.concatenate([other(data) for data in (KNOWN, UNKNOWN)])
        return float(stats.spearmanr(ours, reference).statistic)

    assert correlation(reordered(train, right)) == pytest.approx(1, abs=1e-5)
    assert correlation(train) < 0.95


def test_a_score_of_their_openmax_depends_on_the_other_images_of_the_batch() -> None:
    """In theirs an image has distance 0 to every class that no image of the batch is predicted as."""
    other = openmax(alpha=3, tailsize=20, euclid_weight=0.5)
    together = other(UNKNOWN)
    alone = np.concatenate([other(UNKNOWN.rows(n, n + 1)) for n in range(UNKNOWN.n)])
    assert np.abs(alone - together).max() > 0.1
    (chosen,) = parse_detectors("openmax[weight=1]")
    fitted = fit(chosen, TRAIN, HEAD)
    assert confidence(fitted, UNKNOWN, rows=1) == pytest.approx(confidence(fitted, UNKNOWN), rel=1e-4)


def test_the_temperature_is_theirs_or_better() -> None:
    """Theirs stops after 50 steps; ours at the lowest NLL."""
    (chosen,) = parse_detectors("tempscale")
    fitted = fit(chosen, VAL)
    detector = theirs.TemperatureScaling(None).fit_logits(tensor(VAL, "logits"), tensor(VAL, "labels"))

    def nll(temperature: float) -> float:
        z = tensor(VAL, "logits").double() / temperature
        return float(torch.nn.functional.cross_entropy(z, tensor(VAL, "labels")))

    assert nll(fitted.state) <= nll(float(detector.t.detach())) < nll(1.0)
    ranks = stats.spearmanr(confidence(fitted, KNOWN), logits(detector)(KNOWN)).statistic
    assert ranks > 0.999


def test_odin_from_pixels(tmp_path: Path) -> None:
    """The probe and the detector together: gradient, step and temperature."""
    network = small_network()
    images = BenchmarkImages(load_manifest("digits"))
    run = Extractor(load_model(network, device="cpu"), images, Store(tmp_path)).run()
    (chosen,) = parse_detectors("odin[T=10,eps=0.01]")
    ours = confidence(fit(chosen), run.group("test", "digits-6-9", chosen.needs).arrays)
    detector = theirs.ODIN(network.eval(), temperature=10, eps=0.01)
    pixels = torch.stack(
        [torch.from_numpy(np.array(image)) for image, _ in images.group("test", "digits-6-9")]
    )
    reference = -detector.predict(pixels.permute(0, 3, 1, 2) / 255).detach().double().numpy()
    assert stats.spearmanr(ours, reference).statistic > 1 - 1e-4


FOREIGN = (
    "MaxSoftmax[t=10]",
    "KNN[k=20]",
    "ViM[d=10]",
    "ReAct[percentile=0.9]",
    "OpenMax",
    "KLMatching",
    "RMD",
)


@pytest.mark.parametrize("spec", FOREIGN)
def test_any_of_theirs_plugs_in_by_name(spec: str) -> None:
    (chosen,) = parse_detectors(f"pytorch_ood.detector:{spec}")
    assert (
        chosen.label == f"pytorch_ood.{spec.partition('[')[0].lower()}" + spec[len(spec.partition("[")[0]) :]
    )
    assert chosen.spec.paper is not None
    fitted = fit(chosen, {"train": TRAIN, "val": VAL, None: None}[chosen.spec.fit_on], HEAD)
    known, unknown = (confidence(fitted, data) for data in (KNOWN, UNKNOWN))
    assert auroc(known, unknown) > 0.9
    assert confidence(fitted, KNOWN, rows=17) == pytest.approx(known, rel=1e-3, abs=1e-5)


def test_ours_and_theirs_by_name_rank_alike() -> None:
    ours, foreign = parse_detectors("vim[dim=10],pytorch_ood.detector:ViM[d=10]")
    found = [confidence(fit(one, TRAIN, HEAD), KNOWN) for one in (ours, foreign)]
    assert stats.spearmanr(*found).statistic == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("ODIN", "ODIN"),
        ("Gram", "Gram"),
        ("RankFeat", "RankFeat"),
        ("MCM", ("MCM", "text_embeddings")),
        ("WeightedEBO", "WeightedEBO"),
    ],
)
def test_those_that_need_more_than_is_stored_are_refused_in_a_line(name: str, named: object) -> None:
    with raises(DataError, where="pytorch_ood.detector", naming=named) as caught:
        parse_detectors(f"pytorch_ood.detector:{name}")
    assert "\n" not in caught.value.line()


def test_those_that_are_listed_can_be_used() -> None:
    """Every one listed scores, given a value where it has no default."""
    given = {"ViM": "[d=10]", "DICE": "[p=0.3]"}
    names = [method.name.partition(":")[2] for method in pytorch_ood_specs()]
    assert {"MaxSoftmax", "KNN", "ViM", "ASH", "GMM", "LTS", "PNML"} <= set(names)
    assert {"MCD", "ODIN", "RankFeat", "MCM", "WeightedEBO", "Gram"}.isdisjoint(names)
    for name in names:
        (chosen,) = parse_detectors(f"pytorch_ood.detector:{name}{given.get(name, '')}")
        fitted = fit(chosen, {"train": TRAIN, "val": VAL, None: None}[chosen.spec.fit_on], HEAD)
        assert len(set(confidence(fitted, KNOWN).tolist())) > 1, name


def test_those_that_need_the_network_or_a_value_say_so() -> None:
    with raises(DataError, where="pytorch_ood.detector"):
        parse_detectors("pytorch_ood.detector:MCD")
    with raises(DataError, where="ViM"):
        parse_detectors("pytorch_ood.detector:ViM")
    with raises(UnknownNameError, where="--detectors pytorch_ood.detector", naming="Vim"):
        parse_detectors("pytorch_ood.detector:Vim")
