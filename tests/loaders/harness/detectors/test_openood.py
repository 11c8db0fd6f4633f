"""Detectors against what OpenOOD v1.5 computes, written out naively: image by image, from reading its code.

OpenOOD itself is not installed here: what a test calls OpenOOD's is our reading of the commit that it or
docs/detectors.md names.

Where they differ, docs/detectors.md says why, and a test here or beside it holds ours to the paper's formula.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.detectors import get_detector, list_detectors, parse_detectors
from loaders.harness.evaluation.scoring import confidence, fit
from tests.loaders.harness.detectors.openood_formulas import (
    ODIN,
    ORACLES,
    WORLDS,
    behind,
    mds,
    rows,
    softmax,
    theirs,
    vim,
)
from wordnet_splits.metrics import auroc

DOCS = Path(__file__).resolve().parents[4] / "docs"


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
    assert sorted(listed) == sorted(list_detectors())
