"""Steps along gradients follow the input of the model: one channel, or no image at all."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
from torch import nn  # noqa: E402  (after the skip)

from loaders import evaluate  # noqa: E402
from tests.loaders.harness.long_tables import long_scores  # noqa: E402
from tests.raising import raises  # noqa: E402
from wordnet_splits.base.errors import DataError  # noqa: E402

K = 3
STEPPING = "odin[eps=0.1],ip_ts_mlv[eps=0.1],mdsens"
GREY, RGB, VECTORS = (1, 6, 6), (3, 6, 6), (10,)


def network(shape: tuple[int, ...]) -> Any:
    torch.manual_seed(0)
    if len(shape) == 1:
        return nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, K))
    layers = [
        nn.Conv2d(shape[0], 4, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 8),
        nn.ReLU(),
        nn.Linear(8, K),
    ]
    return nn.Sequential(*layers)


def sets(shape: tuple[int, ...]) -> dict[str, Any]:
    def drawn(n: int, seed: int) -> tuple[Any, Any]:
        numbers = torch.Generator().manual_seed(seed)
        return torch.randn(n, *shape, generator=numbers), torch.arange(n) % K

    return {
        name: drawn(30, seed)
        for seed, name in enumerate(("id", "near", "id/train", "id/val", "external/val"))
    }


@pytest.mark.parametrize("shape", [GREY, RGB, VECTORS], ids=["grey", "rgb", "vectors"])
def test_models_of_any_channels_take_steps(shape: tuple[int, ...]) -> None:
    found = evaluate(network(shape), sets=sets(shape), detectors=STEPPING, std=1)
    assert len(found.detectors) == 3
    assert all(len(found.values("auroc", group="near", detector=name)) == 1 for name in found.detectors)


def test_one_standard_deviation_is_that_of_every_channel() -> None:
    given = sets(RGB)
    values = [
        evaluate(network(RGB), sets=given, detectors="odin[eps=0.1]", std=std)
        .confidences("odin[eps=0.1]")
        .tolist()
        for std in (0.5, (0.5, 0.5, 0.5), (0.5, 0.5, 1.0))
    ]
    assert values[0] == values[1] != values[2]


def test_standard_deviations_of_other_channels_are_refused() -> None:
    with raises(DataError, where="Sequential", naming="3"):
        evaluate(network(GREY), sets=sets(GREY), detectors="odin", std=(0.2, 0.3, 0.4))


def test_odin_on_vectors_is_the_formula() -> None:
    """x' = x - eps sign(-gradient) / std, by hand."""
    net, given = network(VECTORS), sets(VECTORS)
    found = evaluate(net, sets=given, detectors="ip_ts_mlv[T=10,eps=0.1]", std=2)
    x = given["near"][0].clone().requires_grad_(True)
    torch.log_softmax(net(x) / 10, dim=1).max(dim=1).values.sum().backward()
    with torch.no_grad():
        due = net(x - 0.1 * torch.sign(-x.grad) / 2).max(dim=1).values
    scores = long_scores(found).to_pandas()
    ours = torch.tensor(scores[scores.group == "near"].confidence.to_numpy())
    torch.testing.assert_close(ours.float(), due)
