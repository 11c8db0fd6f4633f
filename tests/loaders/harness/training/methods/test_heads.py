"""Confidences of methods with heads of their own against formulas, and the groups of MOS in WordNet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import beta
from torch import nn

from loaders.harness.training.methods import get_method
from loaders.harness.training.methods.class_groups import groups_of
from loaders.harness.training.methods.rotations import rotated
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.wordnet.taxonomy import load

from .oracles.formulas import cross_entropy, log_sum_exp, softmax
from .oracles.heads import logits_of
from .stand_ins import FixedOutputs

GENERATOR = np.random.default_rng(0)
FEATURES = torch.tensor(GENERATOR.normal(size=(8, 5)), dtype=torch.float32)
LOGITS = torch.tensor(GENERATOR.normal(size=(8, 6)), dtype=torch.float32)


def network(name: str, features: torch.Tensor = FEATURES, logits: torch.Tensor = LOGITS) -> Any:
    torch.manual_seed(0)
    method = get_method(name)
    stand_in = FixedOutputs.__new__(FixedOutputs)
    stand_in.facts = {"groups": [0, 0, 1, 1, 1, 2]}
    stand_in.features, stand_in.values, stand_in.width = features, logits, features.shape[1]
    stand_in.heads = dict(method.heads(stand_in, logits.shape[1]))  # type: ignore[arg-type]
    stand_in.head = stand_in.heads.get("head", nn.Identity()).eval()
    return method, stand_in


def confidences(name: str, n: int) -> dict[str, Any]:
    method, model = network(name)
    with torch.no_grad():
        values = method.confidences(model, torch.zeros(n, 3, 4, 4))
    assert set(values) == set(method.outputs)
    return {key: value.numpy() for key, value in values.items()}


def arrays(module: nn.Module) -> dict[str, Any]:
    return {name: value.detach().double().numpy() for name, value in module.state_dict().items()}


def test_rotations_are_counted_from_none_to_three_quarters() -> None:
    image = torch.arange(4.0).view(1, 1, 2, 2)
    assert [turned.flatten().tolist() for turned in rotated(image)] == [
        [0, 1, 2, 3],
        [1, 3, 0, 2],
        [3, 2, 1, 0],
        [2, 0, 3, 1],
    ]
    with raises(DataError, naming=("4", "5")):
        rotated(torch.zeros(1, 3, 4, 5))


def test_the_confidence_of_rotpred() -> None:
    _, model = network("rotpred")
    head = arrays(model.heads["rotation"])
    losses = [
        cross_entropy(head["weight"] @ f + head["bias"], row // 2) for row, f in enumerate(FEATURES.numpy())
    ]
    means = np.array(losses).reshape(4, 2).mean(0)
    divergence = [-np.log(softmax(z)).mean() for z in LOGITS[:2].tolist()]
    values = confidences("rotpred", 2)
    np.testing.assert_allclose(values["rotation"], -means, rtol=1e-5)
    np.testing.assert_allclose(values["joint"], np.array(divergence) - means, rtol=1e-5)


def test_the_confidences_of_godin() -> None:
    _, model = network("godin")
    head, values = arrays(model.head), confidences("godin", 8)
    for row, f in enumerate(FEATURES.double().numpy()):
        logits = np.array(logits_of(head, f))
        h = [float(w @ f) / (np.linalg.norm(w) * np.linalg.norm(f)) for w in head["weight"]]
        assert values["h"][row] == pytest.approx(max(h), rel=1e-5)
        assert values["g"][row] == pytest.approx(max(h) / logits.max(), rel=1e-5)


def test_the_confidence_of_mos_is_that_of_the_group_that_doubts_least() -> None:
    _, model = network("mos")
    head, values = arrays(model.head), confidences("mos", 8)
    for row, f in enumerate(FEATURES.double().numpy()):
        z = head["outputs.weight"] @ f + head["outputs.bias"]
        groups = [[0, 1, 6], [2, 3, 4, 7], [5, 8]]
        others = [z[members[-1]] - log_sum_exp([z[k] for k in members]) for members in groups]
        assert values["others"][row] == pytest.approx(-min(others), rel=1e-4)
    classes, others = model.head.log_probabilities(FEATURES)
    sums = torch.stack([classes.exp()[:, a:b].sum(1) for a, b in ((0, 2), (2, 5), (5, 6))], 1)
    torch.testing.assert_close(sums + others.exp(), torch.ones(8, 3))


def test_the_confidences_of_mcd_are_the_distance_and_the_entropy_that_the_second_has_more() -> None:
    _, model = network("mcd")
    head, values = arrays(model.heads["second"]), confidences("mcd", 8)
    for row, f in enumerate(FEATURES.double().numpy()):
        p, q = softmax(LOGITS[row].tolist()), softmax(head["weight"] @ f + head["bias"])
        h1, h2 = (-sum(v * np.log(v) for v in share) for share in (p, q))
        assert values["discrepancy"][row] == pytest.approx(h2 - h1, rel=1e-4, abs=1e-6)
        distance = sum(abs(a - b) for a, b in zip(p, q, strict=True))
        assert values["distance"][row] == pytest.approx(-distance, rel=1e-4)


def test_the_confidence_of_csi_joins_the_rotations() -> None:
    _, model = network("csi-linear")
    head, values = arrays(model.heads["joint"]), confidences("csi-linear", 2)
    z = FEATURES.double().numpy() @ head["weight"].T + head["bias"]
    for image in range(2):
        means = [np.mean([z[2 * turn + image, 4 * k + turn] for turn in range(4)]) for k in range(6)]
        assert values["joint"][image] == pytest.approx(max(means), rel=1e-5)


@pytest.mark.parametrize("objective", ["log", "digamma", "mse"])
def test_objectives_of_edl_are_integrals_over_its_dirichlet_distribution(objective: str) -> None:
    """Sensoy et al. eq. 3 to 5 before they are solved, for two classes, where p is of a beta distribution."""
    method: Any = get_method("edl", {"objective": objective}, where="")
    for a, b in ((1.2, 3.4), (7.0, 1.5)):
        (value,) = method.risk(torch.tensor([[a, b]]), torch.tensor([[1, 0]]))
        of_p = beta(a, b)
        expected = {
            "log": -np.log(of_p.expect(lambda p: p)),
            "digamma": of_p.expect(lambda p: -np.log(p)),
            "mse": of_p.expect(lambda p: 2 * (1 - p) ** 2),
        }[objective]
        assert float(value) == pytest.approx(expected, rel=1e-5)


def test_the_confidences_of_edl_and_arpl() -> None:
    evidence = confidences("edl", 8)["evidence"]
    expected = [np.log(sum(np.exp(v) + 1 for v in z)) for z in LOGITS.tolist()]
    np.testing.assert_allclose(evidence, expected, rtol=1e-5)
    np.testing.assert_allclose(confidences("arpl", 8)["distance"], LOGITS.numpy().max(1))


@pytest.mark.parametrize(("name", "classes"), [("unknown-cifar", 40), ("openood-imagenet1k", 1000)])
def test_groups_are_subtrees_of_about_the_wanted_number(name: str, classes: int) -> None:
    manifest = load_manifest(name, check="none")
    facts = groups_of(manifest, classes)
    groups, names = facts["groups"], facts["group_names"]
    assert len(groups) == classes
    assert set(groups) == set(range(len(names)))
    assert classes**0.5 / 1.5 < len(names) < classes**0.5 * 1.5
    assert groups_of(manifest, classes) == facts
    taxonomy = load()
    wnids = {r["label"]: r["wnids"][0] for r in manifest.classes.to_pylist() if r["role"] == "id"}
    for label, group in enumerate(groups):
        assert taxonomy.is_ancestor(taxonomy.from_name(names[group]), wnids[label]) or names[group] in (
            taxonomy.name(wnids[label])
        )


def test_groups_without_synsets_or_of_one_subtree_are_of_consecutive_labels() -> None:
    assert groups_of(load_manifest("digits", check="none"), 6)["groups"] == [0, 0, 0, 1, 1, 1]
    assert groups_of(None, 6)["groups"] == [0, 0, 0, 1, 1, 1]
    assert groups_of(None, 7, 3)["groups"] == [0, 0, 0, 1, 1, 1, 2]
