"""Virtual outliers against direct draws, queues against lists, and the confidences against formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.stats import ks_2samp

from loaders.harness.training.methods import get_method
from loaders.harness.training.methods.interface import Data, State
from loaders.harness.training.methods.virtual_outliers import (
    least_likely_draws,
    push,
    queues_are_full,
    start_queues,
)
from tests.raising import raises
from wordnet_splits.base.errors import DataError

from .oracles.embeddings import phi
from .oracles.formulas import log_sum_exp
from .stand_ins import new_state
from .test_heads import FEATURES, LOGITS, arrays, confidences, network


def state_of(labels: list[int], classes: int, largest: int, size: int) -> State:
    state = new_state()
    names = tuple(f"c{n}" for n in range(classes))
    start_queues(state, Data(torch.tensor(labels), 0, names, lambda: None), largest, size)  # type: ignore[arg-type, return-value]
    return state


def test_the_least_likely_draw_is_distributed_as_that_of_many_direct_draws() -> None:
    generator, draws, d, repetitions = np.random.default_rng(0), 50, 3, 2000
    factor = np.array([[1.0, 0, 0], [0.8, 0.5, 0], [-0.3, 0.2, 2.0]])
    queue = torch.tensor(generator.normal(size=(repetitions, 8, d)) @ factor.T, dtype=torch.float32)
    queue = queue - queue.mean(1, keepdim=True)  # every class at 0, so that they can be compared
    virtual = least_likely_draws(queue, draws, torch.Generator().manual_seed(0)).double().numpy()
    flat = queue.double().numpy().reshape(-1, d)
    covariance = flat.T @ flat / len(flat)
    direct = generator.multivariate_normal(np.zeros(d), covariance, size=(repetitions, draws))
    distances = np.einsum("rmi,ij,rmj->rm", direct, np.linalg.inv(covariance), direct)
    least = direct[np.arange(repetitions), distances.argmax(1)]
    for axis in range(d):
        assert ks_2samp(virtual[:, axis], least[:, axis]).pvalue > 0.01
    radii = [np.einsum("ri,ij,rj->r", v, np.linalg.inv(covariance), v) for v in (virtual, least)]
    assert ks_2samp(*radii).pvalue > 0.01
    one = least_likely_draws(queue, 1, torch.Generator().manual_seed(0)).double().numpy()
    assert ks_2samp(one[:, 0], least[:, 0]).pvalue < 1e-6


def test_queues_hold_the_last_features_of_each_class() -> None:
    generator = np.random.default_rng(0)
    state = state_of([0, 0, 0, 1, 1, 1, 1], 2, 3, 1)
    expected: dict[int, list[float]] = {0: [], 1: []}
    for step in range(6):
        labels = generator.integers(0, 2, 4 if step else 2)
        values = generator.normal(size=len(labels)).astype(np.float32)
        push(state, torch.tensor(values)[:, None], torch.tensor(labels))
        for label, value in zip(labels, values, strict=True):
            expected[int(label)].append(float(value))
        full = min(len(v) for v in expected.values()) >= 3
        assert queues_are_full(state, 0.0) is full
    assert full
    for label, values in expected.items():
        assert sorted(state["queue"][label, :, 0].tolist()) == sorted(values[-3:])
    state.epoch, state.epochs = 3, 10
    assert not queues_are_full(state, 0.4)
    with raises(DataError, naming="c2"):
        state_of([0, 1], 3, 3, 1)


def test_outliers_of_npos_are_far_from_the_queue() -> None:
    method: Any = get_method("npos[neighbours=5,boundary=4,draws=100,keep=10]")
    queue = torch.nn.functional.normalize(
        torch.randn(2, 20, 8, generator=torch.Generator().manual_seed(0)), dim=2
    )
    kept = method.synthesise(queue, torch.Generator().manual_seed(1)).view(2, 10, 8)
    every: Any = get_method("npos[neighbours=5,boundary=4,draws=100,keep=100]")
    drawn = every.synthesise(queue, torch.Generator().manual_seed(1)).view(2, 100, 8)
    fifth = [torch.cdist(points, queue).sort(2).values[:, :, 4] for points in (kept, drawn)]
    torch.testing.assert_close(
        fifth[0].sort(1, descending=True).values, fifth[1].sort(1, descending=True).values[:, :10]
    )
    close: Any = get_method("npos[neighbours=5,boundary=4,draws=100,keep=100,variance=1e-8]")
    centres = torch.cdist(
        close.synthesise(queue, torch.Generator().manual_seed(1)).view(2, 100, 8), queue
    ).argmin(2)
    sixth = torch.cdist(queue, queue).sort(2).values[:, :, 5]
    for label in range(2):
        assert set(centres[label].tolist()) == set(sixth[label].topk(4).indices.tolist())


def test_the_confidences() -> None:
    _, model = network("vos")
    head, values = arrays(model.heads["uncertainty"]), confidences("vos", 8)["certainty"]
    expected = [-phi(head, np.array([-log_sum_exp(z + head["log_weights"])]), "phi.") for z in LOGITS.numpy()]
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-6)
    _, model = network("npos")
    with torch.no_grad():
        embeddings = model.head.embed(FEATURES).double().numpy()
    expected = [phi(arrays(model.heads["phi"]), z) for z in embeddings]
    np.testing.assert_allclose(confidences("npos", 8)["level"], expected, rtol=1e-4, atol=1e-6)
