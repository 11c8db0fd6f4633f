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
    openmax,
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


@pytest.mark.parametrize("world", WORLDS)
def test_openmax_ranks_by_the_unknown_class_as_openood_since_2023_03_27(world: str) -> None:
    """Until then (99927d9c) the confidence was the greatest probability, the unknown class's among them."""
    data = WORLDS[world]
    of = openmax(data)
    logits = np.concatenate([rows(part, "logits") for part in (data.known, data.unknown)])
    probabilities = np.array([of(z) for z in logits])
    (chosen,) = parse_detectors("openmax[distance=euclidean]")
    fitted = fit(chosen, data.train)
    ours = np.concatenate([confidence(fitted, part) for part in (data.known, data.unknown)])
    assert stats.spearmanr(ours, -probabilities[:, -1]).statistic == pytest.approx(1, abs=1e-6)
    assert stats.spearmanr(ours, probabilities.max(axis=1)).statistic < 0.8


def one_hot_klm(validation: Array, z: Array) -> float:
    """KLM of OpenOOD v1.5: a class that is never predicted on ID val has a one-hot mean; float32."""
    p, said = softmax_float32(validation), validation.argmax(axis=1)
    classes = validation.shape[1]
    means = [p[said == c].mean(axis=0) if (said == c).any() else np.eye(classes)[c] for c in range(classes)]
    return -min(float(stats.entropy(softmax_float32(z[None])[0], mean)) for mean in means)


def softmax_float32(z: Array) -> Array:
    e = np.exp((z - z.max(axis=1, keepdims=True)).astype(np.float32))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def test_a_class_never_predicted_on_id_val_is_as_in_openood_but_for_a_softmax_of_exactly_one() -> None:
    data = WORLDS["noise"]
    validation = rows(data.val, "logits")
    said = validation.argmax(axis=1)
    logits = rows(data.known, "logits")
    absent = int(logits[0].argmax())
    seen = np.flatnonzero(said != absent)
    fitted = fit(get_detector("klm"), Arrays({"logits": data.val["logits"][seen]}))

    def both(logits: Array) -> tuple[Array, Array]:
        ours = confidence(fitted, Arrays({"logits": logits.astype(np.float32)}))
        return ours, np.array([one_hot_klm(validation[seen], z) for z in logits])

    ours, openood = both(logits)
    assert np.isfinite(openood).all()
    assert stats.spearmanr(ours, openood).statistic == pytest.approx(1, abs=1e-5)
    saturated = np.where(np.arange(logits.shape[1]) == absent, 200.0, 0.0)[None]
    ours, openood = both(np.concatenate([logits, saturated]))
    assert openood.argmax() == ours.argmin() == len(logits)  # their most confident image, ours the least
    assert openood[-1] == 0


def test_gram_of_openood_v15_is_how_far_sums_are_beyond_single_channels_and_the_wrong_way_round() -> None:
    """Bounds over all channels at once, sums over channels held against them, sign kept (403f70f7)."""
    world, name = WORLDS["clusters"], "gram[of=stages,powers=5]/early"
    labels = np.asarray(world.train["labels"])
    seen = rows(world.train, name)
    of_class = [seen[labels == c] for c in range(labels.max() + 1)]
    least = np.stack([own.min(axis=(0, 2)) for own in of_class])
    greatest = np.stack([own.max(axis=(0, 2)) for own in of_class])

    def reference(data: Arrays) -> Array:
        total = []
        for image, z in zip(rows(data, name), rows(data, "logits"), strict=True):
            low, high, sums = least[z.argmax()], greatest[z.argmax()], image.sum(axis=1)
            deviation = np.maximum(low - sums, 0) / np.abs(low + 1e-6)
            total.append((deviation + np.maximum(sums - high, 0) / np.abs(high + 1e-6)).sum() / 50)
        return np.array(total)

    (chosen,) = parse_detectors("gram")
    fitted = fit(chosen, {"train": world.train, "val": world.val})
    ours = [confidence(fitted, data) for data in (world.known, world.unknown)]
    assert auroc(*ours) > 0.9
    assert auroc(*(reference(data) for data in (world.known, world.unknown))) < 0.5


def test_gram_of_openoods_pull_request_228_ranks_nearly_as_ours() -> None:
    """Bounds by channel and label, units of a random tenth of train, divided by the greatest probability."""
    world, name = WORLDS["clusters"], "gram[of=stages,powers=5]/early"
    labels = np.asarray(world.train["labels"])
    tenth = np.zeros(len(labels), dtype=bool)
    tenth[np.random.default_rng(0).permutation(len(labels))[: len(labels) // 10]] = True
    seen = rows(world.train, name)
    low = np.stack([seen[(labels == c) & ~tenth].min(axis=0) for c in range(labels.max() + 1)])
    high = np.stack([seen[(labels == c) & ~tenth].max(axis=0) for c in range(labels.max() + 1)])

    def deviations(values: Array, classes: Array) -> Array:
        below = np.maximum(low[classes] - values, 0) / np.abs(low[classes] + 1e-6)
        above = np.maximum(values - high[classes], 0) / np.abs(high[classes] + 1e-6)
        return np.asarray((below + above).sum(axis=(1, 2)))

    usual = deviations(seen[tenth], labels[tenth]).mean()

    def reference(data: Arrays, *, divided: bool) -> Array:
        z = rows(data, "logits")
        share = np.array([softmax(row).max() for row in z]) if divided else 1.0
        return np.asarray(-deviations(rows(data, name), z.argmax(axis=1)) / usual / share)

    (chosen,) = parse_detectors("gram")
    fitted = fit(chosen, {"train": world.train, "val": world.val})
    ours = [confidence(fitted, data) for data in (world.known, world.unknown)]
    for divided in (True, False):
        other = [reference(data, divided=divided) for data in (world.known, world.unknown)]
        assert stats.spearmanr(np.concatenate(ours), np.concatenate(other)).statistic > 0.9
        assert auroc(*other) > 0.9
