"""The specs that are not Pillow's 8-bit filters: clean, and the broken ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from PIL import Image

from fix_resize.resize import ENGINES, apply
from fix_resize.spec import Resize, Step, get_spec
from tests.fix_resize.made_images import Pixels, random_picture
from tests.raising import raises
from wordnet_splits.base.lazy import MissingPackageError


def picture(height: int = 256, width: int = 256, seed: int = 20) -> Pixels:
    return random_picture(np.random.default_rng(seed), height, width)


def last_stage(name: str, pixels: Pixels, size: tuple[int, int] = (32, 32)) -> Pixels:
    stage = get_spec(name).stages[-1]
    assert isinstance(stage, Resize)
    step = Step(stage, (pixels.shape[0], pixels.shape[1]), size, (0, 0), size)
    return np.asarray(ENGINES[stage.engine](Image.fromarray(pixels), step))


def test_nearest_keeps_one_pixel_in_64() -> None:
    pixels = picture()
    np.testing.assert_array_equal(last_stage("nearest", pixels), pixels[4::8, 4::8])


def test_tensor_bilinear_averages_four_pixels_of_64() -> None:
    pixels = picture().astype(np.float64)
    four = pixels[3::8, 3::8] + pixels[3::8, 4::8] + pixels[4::8, 3::8] + pixels[4::8, 4::8]
    np.testing.assert_array_equal(
        last_stage("tensor-bilinear-no-antialias", pixels.astype(np.uint8)),
        np.rint(four / 4).astype(np.uint8),
    )


@pytest.mark.parametrize("size", [(32, 32), (64, 48), (33, 31), (300, 299), (256, 17)])
def test_tensor_bilinear_is_torchs_interpolation(size: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (extra [torch])")
    pixels = picture(256, 200)
    tensor = torch.from_numpy(pixels).permute(2, 0, 1)[None].float()
    theirs = torch.nn.functional.interpolate(tensor, size=size, mode="bilinear", align_corners=False)
    theirs = theirs.round().clamp(0, 255).to(torch.uint8)[0].permute(1, 2, 0).numpy()
    ours = last_stage("tensor-bilinear-no-antialias", pixels, size)
    # The last bit of float32 may fall either way where a value lies halfway between two levels.
    differing = np.abs(ours.astype(int) - theirs.astype(int))
    assert differing.max() <= 1
    assert (differing > 0).mean() < 1e-3


def test_opencv_bilinear_does_not_antialias_either() -> None:
    pytest.importorskip("cv2", reason="OpenCV is not installed (extra [study])")
    pixels = picture()
    ours = last_stage("opencv-bilinear", pixels).astype(int)
    tensor = last_stage("tensor-bilinear-no-antialias", pixels).astype(int)
    assert np.abs(ours - tensor).max() <= 1  # the same four pixels, rounded otherwise


def test_opencv_area_is_pillows_box() -> None:
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed (extra [study])")
    pixels = picture()
    area = cv2.resize(pixels, (32, 32), interpolation=cv2.INTER_AREA).astype(int)
    box = np.asarray(Image.fromarray(pixels).resize((32, 32), Image.Resampling.BOX)).astype(int)
    assert np.abs(area - box).max() <= 1


def test_absent_opencv_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with raises(MissingPackageError, where="'opencv-bilinear'", naming="[study]"):
        apply(get_spec("opencv-bilinear"), Image.fromarray(picture()))


def test_broken_resizers_are_far_from_fix_on_photographs(
    photographs: Callable[[], Iterator[list[Image.Image]]],
) -> None:
    # On other natural crops nearest was up to 163 grey levels off, bilinear without antialias up to 149.
    worst = dict.fromkeys(("nearest", "opencv-bilinear", "tensor-bilinear-no-antialias"), 0)
    for image in (image for batch in photographs() for image in batch):
        fix = apply(get_spec("fix"), image).astype(int)
        for name in worst:
            worst[name] = max(worst[name], int(np.abs(apply(get_spec(name), image) - fix).max()))
    assert min(worst.values()) > 100, worst


def clean_by_hand(image: Image.Image, size: tuple[int, int]) -> np.ndarray:
    """Clean-fid's resizer as its paper describes it: float32 channels through Pillow, then clipped."""
    pixels = np.asarray(image).astype(np.float32)
    channels = [Image.fromarray(pixels[:, :, c]).resize(size, Image.Resampling.BICUBIC) for c in range(3)]
    return np.stack([np.asarray(c) for c in channels], axis=2).clip(0, 255)


def test_clean_is_float_bicubic_rounded_once() -> None:
    image = Image.fromarray(picture(75, 100))
    expected = clean_by_hand(image, (42, 32))[:, 5:37]
    out = apply(get_spec("clean"), image)
    assert np.abs(out - expected).max() <= 0.5 + 1e-4
    direct = np.asarray(image.resize((42, 32), Image.Resampling.BICUBIC))[:, 5:37]
    assert (out != direct).any()  # 8-bit bicubic rounds between its passes
    assert np.abs(out.astype(int) - direct).max() <= 2


def test_clean_does_not_wrap_where_bicubic_overshoots() -> None:
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:, 30:] = 255
    out = apply(get_spec("clean"), Image.fromarray(pixels))
    assert out[:, :10].max() == 0
    assert out[:, -10:].min() == 255
