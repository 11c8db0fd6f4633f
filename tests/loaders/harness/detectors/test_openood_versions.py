"""What OpenOOD computes at one commit and not at another, written out naively from reading both."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.detectors import get_detector, parse_detectors
from loaders.harness.evaluation.scoring import confidence, fit
from tests.loaders.harness.detectors.openood_formulas import WORLDS, openmax, rows, softmax
from wordnet_splits.metrics import auroc


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
