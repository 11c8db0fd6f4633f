"""A head that is given with arrays gives their logits, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaders import evaluate_arrays
from loaders.harness import image_ids
from wordnet_splits.base.errors import DataError

K, D = 6, 16
SETS = ("digits-0-5", "digits-6-9", "gaussian", "uniform")
OWN = ("id", "near", "far:noise", "id/train")
RNG = np.random.default_rng(0)
WEIGHT, BIAS = RNG.normal(size=(K, D)).astype(np.float32), RNG.normal(size=K).astype(np.float32)


def own_sets() -> dict[str, dict[str, Any]]:
    sets: dict[str, dict[str, Any]] = {}
    for name in OWN:
        features = RNG.normal(size=(48, D)).astype(np.float32)
        sets[name] = {"features": features, "logits": features @ WEIGHT.T + BIAS}
        if name.startswith("id"):
            sets[name]["labels"] = np.arange(48) % K
    return sets


def benchmark_folder(folder: Path, head: dict[str, Any]) -> Path:
    folder.mkdir()
    for group in SETS:
        ids = image_ids("digits", group)
        features = RNG.normal(size=(len(ids), D)).astype(np.float32)
        np.savez(folder / f"{group}.npz", features=features, logits=features @ WEIGHT.T + BIAS, ids=ids)
    np.savez(folder / "head.npz", **head)
    return folder


FAULTS: dict[str, tuple[Any, Any]] = {
    "a row less": (WEIGHT[:-1], BIAS[:-1]),
    "a row more": (np.vstack([WEIGHT, WEIGHT[:1]]), np.append(BIAS, BIAS[:1])),
    "a column less": (WEIGHT[:, :-1], BIAS),
    "swapped rows": (WEIGHT[[1, 0, 2, 3, 4, 5]], BIAS[[1, 0, 2, 3, 4, 5]]),
    "no bias": (WEIGHT, np.zeros(K)),
    "temperature": (WEIGHT / 1.1, BIAS / 1.1),
    "another network": (WEIGHT[:, ::-1], BIAS),
    "a complex bias": (WEIGHT, BIAS + 1j),
    "complex weights": (WEIGHT + 1j, BIAS),
    "biases as a matrix": (WEIGHT, BIAS[:, None]),
    "text": (WEIGHT, BIAS.astype(str)),
    "NaN": (WEIGHT, np.where(np.arange(K) == 1, np.nan, BIAS)),
    "beyond float32": (WEIGHT, BIAS.astype(float) + 1e300),
}
NO_PAIRS: dict[str, Any] = {
    "a masked bias": (WEIGHT, np.ma.masked_array(BIAS, np.arange(K) == 1)),
    "a number": (WEIGHT, 1.0),
    "weights alone": WEIGHT,
    "no biases": (WEIGHT, None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_head_of_other_logits_is_refused(fault: str, tmp_path: Path) -> None:
    weight, bias = FAULTS[fault]
    folder = benchmark_folder(tmp_path / "arrays", {"weight": weight, "bias": bias})
    for arguments in (
        {"sets": own_sets(), "head": (weight, bias)},
        {"sets": folder, "benchmark": "digits"},
    ):
        with pytest.raises(DataError) as caught:
            evaluate_arrays(detectors="msp", **arguments)
        assert caught.value.where == "head"


@pytest.mark.parametrize("fault", NO_PAIRS)
def test_what_is_no_head_is_refused(fault: str) -> None:
    with pytest.raises(DataError) as caught:
        evaluate_arrays(own_sets(), "msp", head=NO_PAIRS[fault])
    assert caught.value.where == "head"


def test_detectors_that_need_a_head_are_refused_without_one() -> None:
    with pytest.raises(DataError) as caught:
        evaluate_arrays(own_sets(), "vim")
    assert caught.value.where == "arrays"


def test_the_head_of_the_logits_is_used(tmp_path: Path) -> None:
    never = "energy,ash[percentile=0,variant=p]"  # that removes nothing, so its energy is that of the logits
    folder = benchmark_folder(tmp_path / "arrays", {"weight": WEIGHT, "bias": BIAS})
    own = evaluate_arrays(own_sets(), never, head=(WEIGHT.astype(float), BIAS.tolist()))
    of_benchmark = evaluate_arrays(folder, never, benchmark="digits")
    for results, group in ((own, "near"), (of_benchmark, "uniform")):
        energy, shaped = (
            results.values("auroc", group=group, detector=name)["value"].tolist()
            for name in results.detectors
        )
        assert np.allclose(energy, shaped, atol=1e-3)


def test_the_arrays_of_one_set_of_another_network_are_noticed() -> None:
    sets = own_sets()
    sets["near"]["logits"] = sets["near"]["logits"][:, ::-1]
    with pytest.raises(DataError) as caught:
        evaluate_arrays(sets, "msp", head=(WEIGHT, BIAS))
    assert caught.value.where == "head"
