"""Stored activations are read again only if the model computes each of their arrays alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from loaders import UnknownDetectionSet
from loaders.harness.extraction.activations import extract
from loaders.harness.extraction.outputs import Store
from loaders.harness.extraction.stored_list import StoreError
from loaders.harness.models.loading import load_model
from wordnet_splits.base.errors import DataError

from ..models.networks import CLASSES, small_network
from .stored import pixels

PROBES = ["layer[layer=doubled]", "odin[T=10,eps=0.02]", "dropout[passes=2]"]


def of_function(features: float = 1.0) -> Any:
    """A model whose features are multiplied by a number, and whose logits are not."""

    def model(x: Any) -> tuple[Any, Any]:
        flat = x.flatten(1)
        return features * flat, flat[:, :CLASSES] * flat[:, CLASSES : 2 * CLASSES]

    return load_model(model, device="cpu", model_id="function")


class Multiplied(nn.Module):
    """Multiplies by a number that is no parameter."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Any) -> Any:
        return self.by * x


class Detour(nn.Module):
    """A network with a layer whose output is multiplied by a number, which its features and logits lose."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.doubled, self.network, self.by = Multiplied(by), small_network(), by

    def forward(self, x: Any) -> Any:
        return self.network(self.doubled(x) / self.by)


def test_features_that_changed_beside_equal_logits_are_noticed(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    extract(of_function(), near, Store(tmp_path, 300))
    extract(of_function(), near, Store(tmp_path, 300))
    with pytest.raises(StoreError):
        extract(of_function(1.01), near, Store(tmp_path, 300))


def test_so_are_those_of_which_the_first_shard_was_never_written(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    """What ranks leave that are killed: the canary has images of the other shards."""
    extract(of_function(), near, Store(tmp_path, 300))
    (record,) = tmp_path.rglob("forward/00000.json")
    record.unlink()
    with pytest.raises(StoreError):
        extract(of_function(2.0), near, Store(tmp_path, 300))
    extract(of_function(), near, Store(tmp_path, 300))


class Later(nn.Module):
    """A network whose answer changes for later images: by their pixels, or by their place in a batch."""

    def __init__(self, changed: Callable[[Any], Any] | None = None) -> None:
        super().__init__()
        self.network, self.changed = small_network(), changed

    def forward(self, x: Any) -> Any:
        logits = self.network(x)
        if self.changed is not None:
            logits = torch.where(self.changed(x)[:, None], 1.01 * logits, logits)
        return logits


def test_a_change_that_spares_the_first_images_is_noticed(near: UnknownDetectionSet, tmp_path: Path) -> None:
    images = pixels(near)
    first = images[:8].flatten(1)

    def is_later(x: Any) -> Any:
        return torch.cdist(x.flatten(1), first).min(1).values > 1e-3

    def is_behind(x: Any) -> Any:
        return torch.arange(len(x)) >= 8

    extract(load_model(Later(), device="cpu", head="network.6"), near, Store(tmp_path, 300))
    for changed in (is_later, is_behind):
        model = load_model(Later(changed), device="cpu", head="network.6")
        assert not changed(images[:8]).any()
        with pytest.raises(StoreError):
            extract(model, near, Store(tmp_path, 300))


def test_arrays_of_probes_that_changed_are_noticed(near: UnknownDetectionSet, tmp_path: Path) -> None:
    models = [load_model(Detour(by), device="cpu", head="network.6") for by in (2.0, 4.0)]
    assert models[0].key == models[1].key
    extract(models[0], near, Store(tmp_path), probes=PROBES)
    extract(models[0], near, Store(tmp_path), probes=PROBES)
    extract(models[1], near, Store(tmp_path))  # its features and logits are the same
    with pytest.raises(StoreError):
        extract(models[1], near, Store(tmp_path), probes=PROBES)


def test_so_are_those_of_probes_whose_last_shard_was_never_written(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    models = [load_model(Detour(by), device="cpu", head="network.6") for by in (2.0, 4.0)]
    extract(models[0], near, Store(tmp_path, 300), probes=PROBES)
    of_probes = [p for p in tmp_path.rglob("*.json") if p.stem.isdigit() and p.parent.name != "forward"]
    max(of_probes, key=lambda path: path.stem).unlink()
    with pytest.raises(StoreError):
        extract(models[1], near, Store(tmp_path, 300), probes=PROBES)


def test_half_precision_is_compared_as_exactly_as_it_is_kept(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"features_dtype": "float16"}
    extract(of_function(), near, Store(tmp_path), **options)
    extract(of_function(1.0001), near, Store(tmp_path), **options)
    with pytest.raises(StoreError):
        extract(of_function(1.01), near, Store(tmp_path), **options)


def test_a_model_of_half_precision_is_itself_in_batches_of_any_size(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    model = load_model(small_network().to(torch.bfloat16), device="cpu")
    for batch in (64, 7):
        extract(model, near, Store(tmp_path), batch_size=batch)


class Dropping(nn.Module):
    """A network whose dropout is never switched off, or is on in its first passes alone."""

    def __init__(self, passes: float = float("inf")) -> None:
        super().__init__()
        self.network, self.passes = small_network(), passes

    def forward(self, x: Any) -> Any:
        self.passes -= 1
        features = self.network[:5](x)
        return self.network[6](nn.functional.dropout(features, training=self.passes >= 0))


@pytest.mark.parametrize("passes", [float("inf"), 1])
@pytest.mark.parametrize("permanent", [True, False])
def test_a_network_that_draws_numbers_is_not_deterministic(
    near: UnknownDetectionSet, tmp_path: Path, permanent: bool, passes: float
) -> None:
    model = load_model(Dropping(passes), device="cpu", head="network.6")
    with pytest.raises(DataError) as caught:
        extract(model, near, Store(tmp_path, permanent=permanent))
    assert not isinstance(caught.value, StoreError)
    assert caught.value.where == "Dropping"
    assert str(tmp_path) not in str(caught.value)


def test_so_is_one_whose_activations_were_stored_before_it_did(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    extract(load_model(Dropping(0), device="cpu"), near, Store(tmp_path))
    with pytest.raises(DataError) as caught:
        extract(load_model(Dropping(), device="cpu", model_id="Dropping"), near, Store(tmp_path))
    assert not isinstance(caught.value, StoreError)
