"""What a preset does with a detector that cannot be used: left out and named; by name it is an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from loaders.harness import check_results, evaluate, evaluate_arrays
from loaders.harness.detectors.parsing import get_preset
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.results import Results
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from tests.raising import raises
from wordnet_splits.base.errors import DataError

PARTS = [("known", "id", s, 20) for s in ("train", "val", "test")]
FEW = fake_manifest([*PARTS, ("out", "far", "val", 9), ("far-a", "far", "test", 30)])
TOO_FEW = "20 training images are too few for the 50-th nearest"
KNN = f"fake-0: knn is left out: {TOO_FEW}"


def test_what_cannot_be_fitted_leaves_a_preset_and_the_others_are_as_without_it(tmp_path: Path) -> None:
    from loaders.harness import report

    found = evaluate_runs(FEW, [fake_run(FEW)], "preset:simple")
    others = [name for name in get_preset("simple").detectors if name != "knn"]
    assert (list(found.detectors), found.about.notes) == (others, (KNN,))
    assert found.scores.equals(evaluate_runs(FEW, [fake_run(FEW)], others).scores)
    found.write(tmp_path)
    assert check_results(tmp_path, FEW).ok
    assert TOO_FEW in found.table() + found._repr_html_()
    assert TOO_FEW in report(tmp_path, tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_sweep_none_of_whose_values_can_be_used_leaves_it_and_the_record_too(tmp_path: Path) -> None:
    found = evaluate_runs(FEW, [fake_run(FEW)], "preset:simple", sweep=True)
    assert KNN in found.about.notes
    assert set(found.sweeps["detector"].to_pylist()) == {"energy"}
    found.write(tmp_path)
    assert check_results(tmp_path, FEW).ok


@pytest.mark.parametrize("given", ["knn", "knn,preset:simple", "preset:simple,knn"])
@pytest.mark.parametrize("sweep", [False, True])
def test_asked_for_by_name_it_is_an_error(given: str, sweep: bool) -> None:
    with raises(DataError, where="'knn'"):
        evaluate_runs(FEW, [fake_run(FEW)], given, sweep=sweep)


def test_one_run_of_several_may_lack_a_detector() -> None:
    """A model of whose runs one gives infinite features has the rows of the others."""
    first, second = fake_run(FEW), fake_run(FEW, 1)
    train = second.group("train", "known")
    features = np.array(train.arrays["features"])
    features[3] = np.inf
    object.__setattr__(train, "arrays", train.arrays.replace(features=features))
    found = evaluate_runs(FEW, [first, second], "preset:openood")
    assert len(found.values("auroc", group="far-a", detector="mds")["value"].tolist()) == 1
    assert len(found.values("auroc", group="far-a", detector="msp")["value"].tolist()) == 2
    notes = [note for note in found.about.notes if "mds" in note.split()[1]]
    assert "fake-1: mds is left out: array 'features' holds NaN or infinity, first for image 3" in notes
    assert Results.table(found)


def arrays(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = np.zeros((n, 6), np.float32)
    features[:, :2] = rng.normal(size=(n, 2))
    return {"features": features, "logits": features[:, :3]}


def test_features_without_a_rest_leave_vim_out() -> None:
    """Nothing lies outside half of the dimensions, so there is no virtual logit."""
    labels = np.arange(30) % 3
    sets = {
        "id": {**arrays(30, 0), "labels": labels},
        "id/train": {**arrays(30, 1), "labels": labels},
        "far": arrays(20, 2),
    }
    head = (np.eye(3, 6, dtype=np.float32), np.zeros(3, np.float32))
    found = evaluate_arrays(sets, "preset:openood", head=head)
    assert "vim" not in found.detectors
    assert any("vim is left out: training features have nothing outside" in n for n in found.about.notes)
    with raises(DataError, where="'vim'", naming=("3", "6")):
        evaluate_arrays(sets, "vim", head=head)


def test_steps_without_what_the_input_was_normalised_by_leave_a_preset() -> None:
    rng = torch.Generator().manual_seed(0)
    sets = {
        name: (torch.rand((40, 3, 8, 8), generator=rng), torch.arange(40) % 4)
        for name in ("id", "id/train", "id/val", "far")
    }
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)
    )
    why = "needs the standard deviations that the input was normalised by"
    found = evaluate(network, sets=sets, detectors="preset:openood")
    left = {note.split(": ")[1].split(" ")[0] for note in found.about.notes if why in note}
    assert left == {"odin", "mdsens"}
    assert {"mds", "gram", "msp"} <= set(found.detectors)
    for name in left:
        with raises(DataError, naming=name):
            evaluate(network, sets=sets, detectors=name)
    assert evaluate(network, sets=sets, detectors="mdsens[eps=0]").detectors == ("mdsens[eps=0]",)
