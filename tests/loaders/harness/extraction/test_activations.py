"""Stored activations: what the model gives, once per image, in fixed shards."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image

from loaders import UnknownDetectionSet
from loaders.harness.extraction.activations import extract
from loaders.harness.extraction.outputs import Store, image_names
from loaders.harness.extraction.shards import ROWS
from loaders.harness.extraction.stored_list import StoreError
from loaders.harness.models.loading import load_model
from loaders.harness.models.transforms import (
    Normalise,
    Transform,
    choose_transform,
    evaluation_transform,
    to_uint8,
)
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.benchmark.manifest.metadata import Channels, Declared

from ..models.networks import CLASSES, FEATURES, Scaled, Wrapped, small_network
from . import extract_digits
from .stored import SHARD, contents, folder_of, pixels


def test_features_and_logits_are_those_of_the_model(reference: Any, near: UnknownDetectionSet) -> None:
    _, found = reference
    network = small_network().eval()
    with torch.no_grad():
        features = network[:6](pixels(near))
        logits = network(pixels(near))
    assert found.features.shape == (714, FEATURES)
    assert found.logits.shape == (714, CLASSES)
    np.testing.assert_allclose(found.features[:], features.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.logits[:], logits.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        found.features[:] @ found.head.weight.T + found.head.bias, found.logits[:], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_array_equal(found.labels, np.full(714, -1))
    assert found.table.equals(near.table)
    assert found.notes == ()


def test_shards_have_fixed_rows_and_record_their_settings(reference: Any) -> None:
    store, _ = reference
    folder = folder_of(store)
    assert folder.parts[-3:-1] == (reference[1].model_key, reference[1].transform_key)
    rows = [len(np.load(p)) for p in sorted((folder / "forward" / "logits").iterdir())]
    assert rows == [128, 128, 128, 128, 128, 74]
    settings = json.loads((folder / "forward" / "00003.json").read_text())["settings"]
    assert (settings["batch_size"], settings["dtype"], settings["threads"]) == (32, "float32", 1)
    assert settings["libraries"]["torch"] == torch.__version__
    assert settings["device"].startswith("cpu")


def test_a_batch_never_crosses_a_shard(near: UnknownDetectionSet, tmp_path: Path) -> None:
    sizes: list[int] = []

    class Sizes(Wrapped):
        def forward(self, x: Any) -> Any:
            sizes.append(len(x))
            return super().forward(x)

    extract(load_model(Sizes(), device="cpu"), near, Store(tmp_path, 300), batch_size=128)
    forward = [size for size in sizes if size != ROWS]  # the canary
    assert forward == [128, 128, 44, 128, 128, 44, 114]


class Subset(UnknownDetectionSet):
    """Some images of a set in another order, as another benchmark would have them."""

    def __init__(self, data: UnknownDetectionSet, rows: Sequence[int]) -> None:
        self.__dict__.update(data.__dict__)
        self.index = np.asarray(rows)
        table = data.table.take(pa.array(self.index))
        group = pa.array(["known"] * len(self.index))
        self.table = table.set_column(table.schema.get_field_index("group"), "group", group)

    def __len__(self) -> int:
        return len(self.index)

    def _rows(self, indices: Any) -> Any:
        return self.index[np.asarray(indices, np.int64)]


def test_nothing_is_forwarded_twice_and_benchmarks_share_images(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    network = Wrapped()
    model, store = load_model(network, device="cpu"), Store(tmp_path, SHARD)
    canary = 2 * ROWS  # of each list: for its logits, and to compare what is stored
    odd, probe = [n for n in range(714) if n % 2], "odin[T=10,eps=0]"
    half = extract(model, Subset(near, odd), store)
    assert network.seen < len(odd) + 3 * ROWS + 8
    network.seen = 0
    whole = extract(model, near, store)
    assert network.seen < 714 - len(odd) + 3 * ROWS + 8 + canary
    np.testing.assert_array_equal(whole.logits[:][odd], half.logits[:])
    assert len(whole.notes) == 1
    again = extract(load_model(network, device="cpu"), near, Store(tmp_path / "again", SHARD))
    assert again.notes == ()
    for name in ("features", "logits"):
        np.testing.assert_allclose(whole.arrays[name][:], again.arrays[name][:], rtol=1e-4, atol=1e-6)
    network.seen = 0
    backwards = extract(model, Subset(near, range(713, -1, -1)), store)
    assert network.seen <= 2 * canary
    np.testing.assert_array_equal(backwards.logits[:], whole.logits[:][::-1])
    assert backwards.table["group"][0].as_py() == "known"
    network.seen = 0
    with_probe = extract(model, near, store, probes=[probe])
    assert network.seen <= 3 * canary + 2 * 714  # the probe's own passes, not the forward pass
    np.testing.assert_allclose(with_probe.arrays[f"{probe}/logits"][:], whole.logits[:], rtol=1e-5, atol=1e-6)


def test_an_image_is_its_source_id_and_view(near: UnknownDetectionSet) -> None:
    table = near.table
    names = image_names(table)
    assert len(set(names)) == 714
    assert names == image_names(table.drop_columns(["label", "role", "digest"]))
    view = table.set_column(table.schema.get_field_index("view"), "view", pa.array(["fix"] * 714))
    assert set(names).isdisjoint(image_names(view))


def test_other_pictures_under_the_names_of_ones_own_are_other_images(near: UnknownDetectionSet) -> None:
    source, digest = (near.table.schema.get_field_index(name) for name in ("source", "digest"))
    own = near.table.set_column(source, "source", pa.array(["mypics"] * 714))
    column = pa.array([bytes(31) + bytes([n % 256]) for n in range(714)], pa.binary(32))
    others = own.set_column(digest, "digest", column)
    unknown = own.set_column(digest, "digest", pa.nulls(714, pa.binary(32)))
    plain, of_others = image_names(unknown), image_names(others)
    assert image_names(own) != of_others != plain
    assert plain == image_names(own.drop_columns("digest"))


def test_features_in_float16_are_smaller_and_overflow_is_named(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    model = load_model(small_network(), device="cpu")
    half = extract(model, near, Store(tmp_path / "half"), features_dtype="float16")
    whole = extract(model, near, Store(tmp_path / "whole"))
    assert (half.features.dtype, half.logits.dtype) == (np.float16, np.float32)
    np.testing.assert_allclose(half.features[:], whole.features[:], rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(half.logits[:], whole.logits[:])
    with raises(StoreError, naming="float16"):
        extract(model, near, Store(tmp_path / "half"))
    reused = extract(model, near, Store(tmp_path / "whole"), features_dtype="float16")
    assert len(reused.notes) == 1
    with pytest.raises(DataError, match="store float32"):
        extract(load_model(Scaled(features=1e6)), near, Store(tmp_path / "big"), features_dtype="float16")
    with pytest.raises(UnknownNameError):
        extract(model, near, Store(tmp_path / "other"), features_dtype="int8")


def test_features_in_float16_are_refused_beside_a_probe_in_a_float32_list(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    model, probes = load_model(small_network(), device="cpu"), ["odin[T=1000,eps=0.0014]"]
    extract(model, near, Store(tmp_path / "half"), features_dtype="float16")
    extract(model, UnknownDetectionSet("digits"), Store(tmp_path / "whole"), probes=probes)
    of_probe = folder_of(tmp_path / "whole")
    shutil.rmtree(of_probe / "forward")
    shutil.copytree(of_probe, tmp_path / "half" / of_probe.relative_to(tmp_path / "whole"))
    with raises(StoreError, naming="float16"):
        extract(model, near, Store(tmp_path / "half"), probes=probes)
    read = extract(model, near, Store(tmp_path / "half"), probes=probes, features_dtype="float16")
    assert read.features.dtype == np.float16


def test_evaluation_mode_and_back(near: UnknownDetectionSet, tmp_path: Path) -> None:
    network = small_network()
    network.train()
    network[1].eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    extract(load_model(network, device="cpu"), near, Store(tmp_path))
    assert network[5].training
    assert not network[1].training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert not torch.are_deterministic_algorithms_enabled()


def test_worker_processes_give_the_same_bytes(
    reference: Any, near: UnknownDetectionSet, tmp_path: Path
) -> None:
    model = load_model(extract_digits.Halting(), device="cpu")
    extract(model, near, Store(tmp_path, SHARD), probes=extract_digits.PROBES, batch_size=32, workers=2)
    assert contents(tmp_path) == contents(reference[0])


def test_a_killed_worker_is_not_taken_for_a_wrong_image(near: UnknownDetectionSet, tmp_path: Path) -> None:
    model = load_model(small_network(), device="cpu")
    with raises(DataError, where="Sequential") as refused:
        extract(model, near, Store(tmp_path), transform=Transform({"killed": 1}, _killed), workers=1)
    assert refused.value.hint == "killed processes mostly lacked memory: give fewer --workers"


def _killed(image: Image.Image) -> torch.Tensor:
    """End a process that reads images as the system does where memory is short."""
    if torch.utils.data.get_worker_info() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return to_uint8(image).float()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_transform_that_makes_no_tensor_is_named(
    near: UnknownDetectionSet, tmp_path: Path, workers: int
) -> None:
    with pytest.raises(DataError):
        extract(
            load_model(small_network(), device="cpu"),
            near,
            Store(tmp_path),
            transform=Transform({"broken": 1}, _turned),
            workers=workers,
        )


def _turned(image: Image.Image) -> Image.Image:
    return image.rotate(90)


def test_the_transform_in_force(near: UnknownDetectionSet, tmp_path: Path) -> None:
    model = load_model(small_network(), device="cpu")
    own = UnknownDetectionSet("digits", role="near", transform=lambda image: to_uint8(image).float())
    assert choose_transform(model, near).spec == evaluation_transform("none").spec
    with raises(DataError, where="<lambda>", naming="transform_id"):
        extract(model, own, Store(tmp_path))
    assert choose_transform(model, own, transform_id="bytes").spec == {"transform_id": "bytes"}
    batched = UnknownDetectionSet("digits", role="near", batch_transform=Normalise((0.5,) * 3, (0.25,) * 3))
    assert choose_transform(model, batched).std == (0.25,) * 3
    brings = load_model(small_network(), device="cpu", preprocess=evaluation_transform("resize-32"))
    assert choose_transform(brings, near) is brings.preprocess
    assert choose_transform(brings, near, evaluation_transform("none")).spec["evaluation"] == "none"
    mixed = UnknownDetectionSet("digits")
    recipe = Declared(name="digits", transforms={"gaussian": "resize-32"})
    data = mixed.manifest.data.model_copy(update={"recipe": recipe})
    mixed.manifest = dataclasses.replace(mixed.manifest, data=data)
    with raises(DataError, where="Sequential"):
        choose_transform(model, mixed)


def test_one_step_and_two_steps_of_a_transform_agree(near: UnknownDetectionSet, tmp_path: Path) -> None:
    channels = Channels(mean=[0.5, 0.4, 0.3], sd=[0.2, 0.3, 0.4])
    two = evaluation_transform("resize-32", channels.mean, channels.sd)
    one = Transform({"one": 1}, two, std=two.std)
    model = load_model(small_network(), device="cpu")
    a = extract(model, near, Store(tmp_path), transform=two)
    b = extract(model, near, Store(tmp_path), transform=one)
    assert a.transform_key != b.transform_key
    np.testing.assert_array_equal(a.logits[:], b.logits[:])
    image = Image.new("RGB", (300, 200), (255, 0, 51))
    made = evaluation_transform("resize-256-crop-224", channels.mean, channels.sd)(image)
    assert made.shape == (3, 224, 224)
    np.testing.assert_allclose(
        made[:, 0, 0], [(1 - 0.5) / 0.2, (0 - 0.4) / 0.3, (0.2 - 0.3) / 0.4], rtol=1e-6
    )
