"""Several models on one pass over the images: decoded once, and the same bytes as one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from PIL import Image

from fix_resize.jpeg import jpeg_decoder
from loaders import UnknownDetectionSet
from loaders.harness import evaluate
from loaders.harness.extraction.activations import extract, extract_together
from loaders.harness.extraction.outputs import Store, image_names
from loaders.harness.extraction.shards import ROWS
from loaders.harness.models.loading import load_model
from loaders.harness.models.transforms import as_transform, evaluation_transform

from ..models.networks import Greedy, Wrapped, small_network
from .stored import SHARD, contents

LAYER = "layer[layer=2,statistic=mean]"


def _float_pixels(image: Image.Image) -> torch.Tensor:
    values = torch.tensor(list(image.convert("RGB").tobytes()), dtype=torch.float32)
    return values.view(image.height, image.width, 3).permute(2, 0, 1) / 255


TRANSFORMS = {
    "stored pixels": evaluation_transform("none"),
    "normalised": evaluation_transform("none", (0.5, 0.5, 0.5), (0.2, 0.2, 0.2)),
    "resized": evaluation_transform("resize-32"),
    "floats": as_transform(_float_pixels, transform_id="floats"),
}


def models(*names: str) -> list[Any]:
    loaded = []
    for seed, name in enumerate(names):
        loaded.append(load_model(small_network(seed=seed), device="cpu", preprocess=TRANSFORMS[name]))
    return loaded


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """How often each image was read: (group, row) -> times."""
    times: Counter[Any] = Counter()
    read = UnknownDetectionSet.__getitems__

    def counting(self: UnknownDetectionSet, indices: Any) -> Any:
        group = self.table["group"][0].as_py(), self.table["split"][0].as_py()
        times.update((*group, row) for row in indices)
        return read(self, indices)

    monkeypatch.setattr(UnknownDetectionSet, "__getitems__", counting)
    return times


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    "names", [("normalised", "normalised"), ("stored pixels", "resized", "floats", "floats")]
)
def test_bytes_are_those_of_each_model_alone(names: tuple[str, ...], workers: int, tmp_path: Path) -> None:
    data = UnknownDetectionSet("digits", role="near")
    together, apart = Store(tmp_path / "together", SHARD), Store(tmp_path / "apart", SHARD)
    all_models = models(*names)
    work = [(model, [LAYER] if number else []) for number, model in enumerate(all_models)]
    extract_together(work, data, together, batch_size=32, workers=workers)
    for model, probes in work:
        extract(model, data, apart, probes=probes, batch_size=32)
    assert contents(tmp_path / "together") == contents(tmp_path / "apart")


def test_models_with_one_preprocessing_share_the_canary(decoded: Counter[Any], tmp_path: Path) -> None:
    work = [(model, ()) for model in models("normalised", "normalised", "stored pixels", "resized")]
    extract_together(work, UnknownDetectionSet("digits", role="near"), Store(tmp_path))
    assert Counter(decoded.values()) == {1: 714 - ROWS, 3: ROWS}  # two image steps: as it is, resized


def test_only_missing_shards_of_each_model_are_computed(tmp_path: Path) -> None:
    data = UnknownDetectionSet("digits", role="near")
    networks = [Wrapped(small_network(seed=seed)) for seed in range(2)]
    first, second = (load_model(network, device="cpu") for network in networks)
    store = Store(tmp_path, SHARD)
    extract(first, data, store, batch_size=32)
    for network in networks:
        network.seen = 0
    extract_together([(first, ()), (second, ())], data, store, batch_size=32)
    assert networks[0].seen < SHARD < 714 <= networks[1].seen


def test_out_of_memory_of_one_model_restarts_the_shard_of_all(tmp_path: Path) -> None:
    data = UnknownDetectionSet("digits", role="near")
    store = Store(tmp_path, SHARD)
    work = [(load_model(network, device="cpu"), ()) for network in (small_network(seed=1), Greedy())]
    activations = extract_together(work, data, store, batch_size=32)
    assert all("shard 0 restarted at 16" in " ".join(each.notes) for each in activations)
    assert [each.n for each in activations] == [714, 714]


def test_an_evaluation_of_several_models_decodes_once(decoded: Counter[Any]) -> None:
    several = {str(seed): small_network(seed=seed) for seed in range(3)}
    results = evaluate(several, "digits", "msp,knn[k=5]", batch_size=64)
    assert results.about.software["JPEG decoder"] == jpeg_decoder().description
    assert len(decoded) == 2677  # without validation images, which neither detector needs
    twice = Counter(part for (*part, _), times in decoded.items() for part in [tuple(part)] if times > 1)
    assert max(twice.values()) <= 2 * ROWS  # the canary, and the images that the model is tried with
    for name, network in several.items():
        alone = evaluate({name: network}, "digits", "msp,knn[k=5]", batch_size=64).to_pandas()
        rows = results.to_pandas()
        rows = rows[rows["model"] == name].drop(columns="run").reset_index(drop=True)
        assert rows.equals(alone.drop(columns="run"))


@pytest.mark.parametrize(("digest", "shared"), [(None, 0), (b"x" * 32, 1)])
def test_images_of_a_users_dataset_are_shared_by_their_digests_only(
    digest: bytes | None, shared: int
) -> None:
    def names(*ids: str) -> set[str]:
        columns = {"source": ["animals"] * len(ids), "image_id": list(ids), "view": ["raw"] * len(ids)}
        return set(image_names(pa.table({**columns, "digest": pa.array([digest] * len(ids), pa.binary())})))

    assert len(names("dog/1", "cat/1") & names("dog/1", "cat/2")) == shared
