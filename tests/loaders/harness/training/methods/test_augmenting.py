"""Image operations against Pillow's, and views: random numbers, shares, rounds, fractals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from loaders.harness.training.methods import get_method
from loaders.harness.training.methods import image_operations as operations
from loaders.harness.training.methods.augmenting import fractal_images, jensen_shannon, join

RNG = np.random.default_rng(0)
SMOOTH = np.stack([np.add.outer(np.arange(24) * k, np.arange(32) * 2) % 256 for k in (3, 5, 7)], 2)
PICTURES = [RNG.integers(0, 256, (24, 32, 3)), RNG.integers(60, 90, (24, 32, 3)), SMOOTH]
IMAGES = torch.from_numpy(np.stack(PICTURES).astype(np.uint8)).permute(0, 3, 1, 2).contiguous()


def by_pillow(function: Callable[[Image.Image], Image.Image]) -> Tensor:
    pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in IMAGES]
    return torch.stack([torch.from_numpy(np.array(function(p))).permute(2, 0, 1) for p in pictures])


def magnitudes(value: float) -> Tensor:
    return torch.full((len(IMAGES),), value)


@pytest.mark.parametrize("value", [-0.8, 0.3])
@pytest.mark.parametrize(
    ("name", "reference", "tolerance"),
    [
        ("autocontrast", lambda v: ImageOps.autocontrast, 1),
        ("equalize", lambda v: ImageOps.equalize, 0),
        ("posterize", lambda v: lambda p: ImageOps.posterize(p, 8 - round(4 * abs(v))), 0),
        ("solarize", lambda v: lambda p: ImageOps.solarize(p, 256 * (1 - abs(v))), 0),
        ("color", lambda v: lambda p: ImageEnhance.Color(p).enhance(1 + 0.9 * v), 1),
        ("contrast", lambda v: lambda p: ImageEnhance.Contrast(p).enhance(1 + 0.9 * v), 1),
        ("brightness", lambda v: lambda p: ImageEnhance.Brightness(p).enhance(1 + 0.9 * v), 1),
        ("sharpness", lambda v: lambda p: ImageEnhance.Sharpness(p).enhance(1 + 0.9 * v), 1),
    ],
)
def test_tones_are_those_of_pillow(name: str, reference: Any, tolerance: int, value: float) -> None:
    changed = getattr(operations, name)(IMAGES, magnitudes(value))
    difference = (changed.int() - by_pillow(reference(value)).int()).abs()
    assert int(difference.max()) <= tolerance


@pytest.mark.parametrize("value", [-1.0, 0.5])
def test_shapes_are_those_of_pillow(value: float) -> None:
    def same(name: str, reference: Callable[[Image.Image], Image.Image]) -> float:
        changed = getattr(operations, name)(IMAGES, magnitudes(value))
        return float((changed == by_pillow(reference)).all(1).double().mean())

    def affine(*matrix: float) -> Callable[[Image.Image], Image.Image]:
        return lambda p: p.transform(p.size, Image.Transform.AFFINE, matrix)

    shear, x, y = 0.3 * value, 32 * 150 / 331 * value, 24 * 150 / 331 * value
    assert same("rotate", lambda p: p.rotate(30 * value)) > 0.95
    assert same("shear_x", affine(1, shear, -12 * shear, 0, 1, 0)) > 0.95
    assert same("shear_y", affine(1, 0, 0, shear, 1, -16 * shear)) > 0.95
    assert same("translate_x", affine(1, 0, x, 0, 1, 0)) > 0.95
    assert same("translate_y", affine(1, 0, 0, 0, 1, y)) > 0.95


def test_operations_are_applied_to_their_images() -> None:
    numbers = np.array([-1, 0, 1])
    changed = operations.apply_operations(
        IMAGES, (operations.solarize, operations.equalize), numbers, np.ones(3)
    )
    assert torch.equal(changed[0], IMAGES[0])
    assert torch.equal(changed[1], 255 - IMAGES[1])
    assert torch.equal(changed[2], operations.equalize(IMAGES, magnitudes(1))[2])


def view_of(spec: str, seed: int = 0) -> Tensor:
    (view,) = get_method(spec).views(lambda images, generator: images)
    return view(IMAGES, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", ["randaugment[operations=2]", "augmix", "pixmix[fractals=10]"])
def test_views_follow_the_generator(name: str) -> None:
    assert torch.equal(view_of(name), view_of(name))
    assert not torch.equal(view_of(name), view_of(name, 1))
    assert view_of(name).dtype == torch.uint8


def test_views_that_change_nothing() -> None:
    assert torch.equal(view_of("randaugment[operations=0]"), IMAGES)
    (view,) = get_method("augmix[alpha=1e-9,width=1]").views(lambda images, generator: images)
    shares = [view(IMAGES, torch.Generator().manual_seed(seed)) for seed in range(20)]
    unchanged = [bool((a == b).all()) for share in shares for a, b in zip(share, IMAGES, strict=True)]
    assert 15 < sum(unchanged) < 50  # Beta(0, 0) is 0 or 1
    kept = [view_of("pixmix[rounds=0,fractals=10]", seed) for seed in range(10)]
    assert 8 < sum(bool((a == b).all()) for view in kept for a, b in zip(view, IMAGES, strict=True)) < 25


def test_three_views_share_the_crop() -> None:
    def shift(images: Tensor, generator: Any) -> Tensor:
        return images.roll(int(torch.randint(0, 20, (), generator=generator)), 3)

    plain, *mixed = get_method("augmix-jsd[severity=0.1]").views(shift)
    generator = torch.Generator().manual_seed(3)
    first = plain(IMAGES, generator)
    state = generator.get_state()
    second, third = (view(IMAGES, generator) for view in mixed)
    generator.set_state(state)
    assert not torch.equal(first, IMAGES)
    assert torch.equal(second, get_method("augmix-jsd[severity=0.1]").mix(first, generator))  # type: ignore[attr-defined]
    assert not torch.equal(second, third)


def test_divergence_of_equal_and_of_certain_predictions() -> None:
    logits = torch.randn(1, 4, 5, generator=torch.Generator().manual_seed(0)).expand(3, 4, 5)
    torch.testing.assert_close(jensen_shannon(logits), torch.zeros(4), atol=1e-6, rtol=0)
    certain = 100 * torch.eye(3).view(3, 1, 3)
    torch.testing.assert_close(jensen_shannon(certain), torch.tensor([np.log(3)]).float())


def test_joined_pictures_have_a_formula() -> None:
    x, y = torch.full((200, 1, 1, 1), 0.3), torch.full((200, 1, 1, 1), 0.6)
    values = join(x, y, 3.0, np.random.default_rng(0)).flatten().double().numpy()
    rng = np.random.default_rng(0)
    first, small, other = rng.beta(3, 1, 200), rng.beta(1, 3, 200), rng.beta(1, 3, 200)
    crossed = rng.random(200) < 0.5
    added = rng.random(200) < 0.5
    for n, value in enumerate(values):
        a, b = (1 + other[n], -small[n]) if crossed[n] else (first[n], small[n])
        sum_ = ((a * (2 * 0.3 - 1) + b * (2 * 0.6 - 1)) + 1) / 2
        expected = sum_ if added[n] else (2 * 0.3) ** a * (2 * 0.6) ** b / 2
        assert value == pytest.approx(min(max(expected, 0), 1), abs=1e-5)


def test_fractals_are_the_same_pictures_every_time() -> None:
    images = fractal_images(30, 12, 16)
    assert images.shape == (30, 3, 12, 16)
    assert torch.equal(images[:10], fractal_images(10, 12, 16))
    assert len({bytes(p.numpy().tobytes()) for p in images}) == 30
    assert float((images > 0).float().mean()) > 0.2
    assert int(images.flatten(1).amax(1).min()) == 255
