"""The torch backend gives Pillow's bytes, by both of its methods, on every device at hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from fix_resize.resize import apply_many, pillow_resize
from fix_resize.spec import get_spec
from tests.fix_resize.made_images import random_cases, random_picture
from wordnet_splits.base.errors import DataError

torch = pytest.importorskip("torch", reason="torch is not installed (extra [torch])")
from fix_resize import backend_torch  # noqa: E402 - it imports torch
from tests.raising import raises  # noqa: E402 - after importorskip

FIX = get_spec("fix")
METHODS = sorted(backend_torch.METHODS)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small tensors gain nothing from threads, and threads that spin cost the other tests their core."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def devices() -> list[object]:
    reason = "this machine has no CUDA device"
    absent = pytest.mark.skipif(not torch.cuda.is_available(), reason=reason)
    return ["cpu", pytest.param("cuda", marks=absent)]


@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("method", METHODS)
def test_equals_pillow_in_2000_random_cases(method: str, device: str) -> None:
    differing = 0
    for case in random_cases(2000, seed=10):
        step = backend_torch._on_device(case.step(), torch.device(device), method)
        planes = torch.from_numpy(case.picture)[None].to(device).permute(0, 3, 1, 2)
        out = backend_torch._resize_planes(planes, step).permute(0, 2, 3, 1)[0].cpu().numpy()
        expected = np.asarray(pillow_resize(Image.fromarray(case.picture), case.size, case.filter_name))
        differing += int((out != expected).sum())
    assert differing == 0


@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("method", METHODS)
def test_batches_through_whole_specs(method: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_torch, "BLOCK_BYTES", 3 * 8 * 3 * 90 * 120)  # three pictures at a time
    rng = np.random.default_rng(11)
    pictures = np.stack([random_picture(rng, 90, 120, extremes=i % 2 == 0) for i in range(7)])
    for name in ("fix", "fix-64", "fix-direct"):
        out = backend_torch.resize_batch(get_spec(name), torch.from_numpy(pictures).to(device), method)
        assert out.device.type == device
        assert out.is_contiguous()
        np.testing.assert_array_equal(out.cpu().numpy(), apply_many(get_spec(name), pictures))


def test_sizes_that_skip_passes_and_empty_batches() -> None:
    rng = np.random.default_rng(12)
    for size in [(256, 256), (256, 300), (300, 256), (1, 1), (900, 300)]:
        pictures = random_picture(rng, *size)[None]
        np.testing.assert_array_equal(apply_many(FIX, pictures, backend="torch"), apply_many(FIX, pictures))
    assert apply_many(FIX, pictures[:0], backend="torch").shape == (0, 32, 32, 3)
    empty = torch.zeros((0, 40, 40, 3), dtype=torch.uint8)
    assert backend_torch.resize_batch(FIX, empty).shape == (0, 32, 32, 3)


def test_wrong_batches_are_named() -> None:
    with raises(DataError, naming=("float32", "4")):
        backend_torch.resize_batch(FIX, torch.zeros((1, 4, 4, 3)))
    with raises(DataError, naming="uint8"):
        backend_torch.resize_batch(FIX, torch.zeros((1, 3, 4, 4), dtype=torch.uint8))
