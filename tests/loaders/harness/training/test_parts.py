"""Networks, schedules, augmentation and the order of batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from loaders.harness.training.choices import Constant, Cosine, OneCycle, Steps, list_networks
from loaders.harness.training.methods.image_operations import (
    crop_and_flip,
    crop_resize_and_flip,
    crop_within_and_flip,
)
from loaders.harness.training.networks import build_network
from loaders.harness.training.steps import derive_seed, epoch_batches
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnknownNameError


def parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("name", "classes", "channels", "size", "count"),
    [
        # He et al.'s 0.27 M: 269,722 and two 1x1 shortcuts with batch norm
        ("resnet20", 10, 3, 32, 269_722 + (16 * 32 + 2 * 32) + (32 * 64 + 2 * 64)),
        ("resnet18", 10, 3, 32, 11_173_962),  # as published for CIFAR-10
        # torchvision's 25,557,032 and 60,192,808 without the heads for 1,000 classes
        ("resnet50-openset", 116, 3, 32, 23_508_032 + 2049 * 116 + 116 * 116),
        ("resnet152-dropout", 200, 3, 32, 58_143_808 + 2049 * 200),
        ("small-cnn", 10, 1, 28, 1_199_882),  # the same CNN in Keras' MNIST example
    ],
)
def test_parameter_counts(name: str, classes: int, channels: int, size: int, count: int) -> None:
    assert parameters(build_network(name, classes, channels=channels, size=(size, size))) == count


@pytest.mark.parametrize("name", list_networks())
@pytest.mark.parametrize("channels", [1, 3])
def test_the_last_linear_layer_gives_the_logits(name: str, channels: int) -> None:
    module = build_network(name, 7, channels=channels, size=(16, 16)).eval()
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)][-1]
    seen: list[torch.Tensor] = []
    linear.register_forward_hook(lambda m, inputs, output: seen.extend([inputs[0], output]))
    logits = module(torch.rand(2, 3, 16, 16))
    assert logits.shape == (2, 7)
    assert torch.equal(seen[1], logits)
    assert seen[0].ndim == 2


@pytest.mark.parametrize(("name", "blocks"), [("resnet20-dropout", 9), ("resnet152-dropout", 50)])
def test_dropout_networks_vary_in_training_only(name: str, blocks: int) -> None:
    module, x = build_network(name, 5), torch.rand(4, 3, 16, 16)
    rates = [m.p for m in module.modules() if isinstance(m, nn.Dropout)]
    assert set(rates) == {0.1, 0.2}
    assert (rates.count(0.1), rates.count(0.2) >= blocks) == (1, True)
    module.eval()
    assert torch.equal(module(x), module(x))
    module.train()
    assert not torch.equal(module(x), module(x))


def test_bottlenecks_drop_after_each_convolution() -> None:
    module = build_network("resnet152-dropout", 5)
    dropped = {name for name, m in module.named_modules() if isinstance(m, nn.Dropout)}
    blocks = {name.removesuffix(".conv3") for name, _ in module.named_modules() if name.endswith(".conv3")}
    assert len(blocks) == 50
    assert dropped == {f"{block}.bn{n}.1" for block in blocks for n in (1, 2, 3)} | {"fc.0"}


def test_small_images_and_unknown_networks_are_refused() -> None:
    with raises(DataError, naming="resnet18"):
        build_network("resnet18", 10, size=(8, 8))
    with raises(UnknownNameError, near="resnet20"):
        build_network("resnet2", 10)


def test_steps_and_constant() -> None:
    steps = Steps(kind="steps", milestones=(120, 160), factor=0.1)
    factors = [steps.factor(epoch * 10 + 9, 10, 200) for epoch in (0, 119, 120, 159, 160, 199)]
    assert factors == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    assert steps.scaled(200, 20).milestones == (12, 16)
    assert Constant(kind="constant").factor(5, 10, 1) == 1


def test_cosine_and_one_cycle() -> None:
    cosine = Cosine(kind="cosine", end=0.001)
    assert cosine.factor(0, 10, 10) == 1
    assert cosine.factor(50, 10, 10) == pytest.approx(0.5005)
    assert cosine.factor(99, 10, 10) == pytest.approx(0.001 + 0.999 * 0.5 * (1 + math.cos(0.99 * math.pi)))
    cycle = OneCycle(kind="one-cycle", warmup=0.25)
    factors = [cycle.factor(step, 10, 4) for step in range(40)]
    assert factors[:10] == pytest.approx([(k + 1) / 10 for k in range(10)])
    assert factors[10] == 1
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert 0 < factors[-1] < 0.01


def test_each_crop_is_a_window_of_the_padded_image_or_its_mirror() -> None:
    images = torch.randint(1, 256, (60, 3, 6, 5), dtype=torch.uint8)
    crops = crop_and_flip(images, torch.Generator().manual_seed(0), padding=2)
    assert (crops.shape, crops.dtype) == (images.shape, torch.uint8)
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    found = set()
    for image, crop in zip(padded, crops.numpy(), strict=True):
        matches = [
            (y, x, mirrored)
            for y in range(5)
            for x in range(5)
            for mirrored in (False, True)
            if np.array_equal(image[:, y : y + 6, x : x + 5], crop[:, :, ::-1] if mirrored else crop)
        ]
        assert len(matches) == 1
        found.update(matches)
    assert {y for y, _, _ in found} == {x for _, x, _ in found} == set(range(5))
    assert {mirrored for _, _, mirrored in found} == {False, True}


def test_resized_crops_show_a_part_of_each_image_at_its_size() -> None:
    ramp = torch.arange(32, dtype=torch.uint8).expand(64, 3, 32, 32) * 8
    crops = crop_resize_and_flip(ramp, torch.Generator().manual_seed(0)).float()
    assert crops.shape == ramp.shape
    slopes = (crops[:, 0, 0, -1] - crops[:, 0, 0, 0]) / (31 * 8)  # share of the width, negative if mirrored
    assert 0.2 < float((slopes < 0).double().mean()) < 0.8
    assert float(slopes.abs().min()) < 0.5 < float(slopes.abs().max()) <= 1.0


def test_the_same_generator_gives_the_same_crops() -> None:
    images = torch.randint(0, 256, (8, 3, 8, 8), dtype=torch.uint8)
    one, same, other = (crop_and_flip(images, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def rows(how: str, seed: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [b.tolist() for b in epoch_batches(10, 6, how, 4, 2, generator)]


def test_batches_of_knowns_alone_and_mixed() -> None:
    assert [len(b) for b in rows("none")] == [4, 4, 2]
    assert sorted(row for batch in rows("none") for row in batch) == list(range(10))
    assert sorted(row for batch in rows("mixed") for row in batch) == list(range(16))
    assert rows("none", 0) != rows("none", 1)


def test_batches_beside_have_twice_as_many_negatives_all_used_alike() -> None:
    batches = rows("beside")
    assert [len(b) for b in batches] == [12, 12, 6]
    assert all(sum(row < 10 for row in b) * 3 == len(b) for b in batches)
    negatives = [row for b in batches for row in b if row >= 10]
    counts = [negatives.count(row) for row in range(10, 16)]
    assert sum(counts) == 20
    assert set(counts) == {3, 4}


def test_derived_seeds_differ_by_purpose() -> None:
    seeds = {derive_seed(s, *p) for s in (0, 1) for p in (("epoch", 1), ("epoch", 11), ("init",))}
    assert len(seeds) == 6
    assert all(0 <= s < 2**63 for s in seeds)


def test_windows_of_larger_images_are_cut_out_of_them_and_mirrored() -> None:
    images = torch.arange(2 * 3 * 9 * 8).reshape(2, 3, 9, 8)
    seen = set()
    for seed in range(300):
        crop = crop_within_and_flip(images, torch.Generator().manual_seed(seed), margin=1)[1]
        assert crop.shape == (3, 7, 6)
        seen.add(tuple(crop.flatten().tolist()))
    windows = {(y, x) for y in range(3) for x in range(3)}
    cut = [images[1, :, y : y + 7, x : x + 6] for y, x in windows]
    assert seen == {tuple(w.flatten().tolist()) for part in cut for w in (part, part.flip(2))}
