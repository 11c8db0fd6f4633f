"""Images that are mixed, or replaced by copies of a folder, and softened labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

from loaders.harness.training.methods import Batch, get_method
from loaders.harness.training.methods.copies import read_copies
from loaders.harness.training.methods.interface import Data
from loaders.harness.training.methods.mixing import blend, draw_beta, paste, softened_cross_entropy
from tests.raising import raises
from wordnet_splits.base.errors import DataError

from .oracles.formulas import left_by_rectangle
from .stand_ins import FixedOutputs, loss_of, new_state

CLASSES = ("dark", "light")

LOGITS = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
LABELS = torch.tensor([0, 1, 2, 3, 0, 1])
BLACK, WHITE = torch.zeros(2, 3, 8, 6), torch.ones(2, 3, 8, 6)


def test_smoothed_labels_are_those_of_torch() -> None:
    expected = functional.cross_entropy(LOGITS, LABELS, label_smoothing=0.1)
    torch.testing.assert_close(loss_of(get_method("label-smoothing"), LOGITS, LABELS), expected)
    uniform = functional.cross_entropy(LOGITS, torch.full_like(LOGITS, 0.25))
    torch.testing.assert_close(softened_cross_entropy(LOGITS, LABELS, 0.0).mean(), uniform)


def test_a_blend_has_the_shares_of_its_images() -> None:
    assert torch.all(blend(BLACK, WHITE, 0.3) == 0.7)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_pasted_rectangle_covers_what_it_says(share: float) -> None:
    state = new_state()
    for _ in range(20):
        before = state.generator.get_state()
        images, left = paste(BLACK, WHITE, share, state)
        assert float((images == 0).double().mean()) == pytest.approx(left)
        state.generator.set_state(before)
        centres = torch.rand(2, generator=state.generator).tolist()
        assert left == pytest.approx(left_by_rectangle(share, centres, 8, 6))
        rows = images[0, 0].any(1).nonzero().flatten()
        assert len(rows) == 0 or int(rows[-1] - rows[0]) == len(rows) - 1
    assert share != 1 or left == 1


def test_beta_numbers_follow_the_generator_and_the_distribution() -> None:
    first, second = ([draw_beta(s, 0.1, 1.0) for _ in range(400)] for s in (new_state(), new_state()))
    assert first == second
    assert np.mean(first) == pytest.approx(1 / 11, abs=0.04)


def test_cutmix_without_mixing_is_cross_entropy() -> None:
    loss = loss_of(get_method("cutmix[probability=0]"), LOGITS, LABELS)
    torch.testing.assert_close(loss, functional.cross_entropy(LOGITS, LABELS))


def test_the_images_are_mixed_before_the_network() -> None:
    seen: list[torch.Tensor] = []

    class Watching(FixedOutputs):
        def logits(self, images: torch.Tensor) -> torch.Tensor:
            seen.append(images)
            return self.values[torch.arange(len(images)) % len(self.values)]

    images = torch.arange(6.0).view(6, 1, 1, 1).expand(6, 3, 8, 8)
    for name in ("mixup", "regmixup", "cutmix[probability=1]"):
        method = get_method(name)
        network = Watching(method, LOGITS)
        method.step(network, Batch((images,), LABELS, torch.arange(6)), new_state())  # type: ignore[arg-type]
    mixed, both, cut = seen
    assert not torch.equal(mixed, images)
    assert float(mixed.mean()) == pytest.approx(2.5)  # each image is a partner once
    assert torch.equal(both[:6], images)
    assert not torch.equal(both[6:], images)
    assert torch.equal(cut, cut.round())
    outliers, method = torch.tensor([0, 1, 2, -1, -1, -1]), get_method("mixoe[cut=false]")
    method.step(Watching(method, LOGITS), Batch((images,), outliers, torch.arange(6)), new_state())  # type: ignore[arg-type]
    share = draw_beta(new_state(), 2.0, 2.0)
    torch.testing.assert_close(
        seen[-1][3:, 0, 0, 0], torch.tensor([0.0, 1, 2]) * share + (1 - share) * (torch.arange(3) + 3)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, values in zip(CLASSES, ((10, 20), (200, 210, 220)), strict=True):
        (tmp_path / name).mkdir()
        for value in values:
            Image.new("RGB", (4, 4), (value,) * 3).save(tmp_path / name / f"{value}.png")
    (tmp_path / "dark" / "notes.txt").write_text("not a picture")
    return tmp_path


def data_of(classes: tuple[str, ...] = CLASSES) -> Data:
    return Data(torch.tensor([0, 1]), 0, classes, lambda: None)  # type: ignore[arg-type, return-value]


def images_of(method: Any, labels: torch.Tensor) -> torch.Tensor:
    seen = []

    class Watching(FixedOutputs):
        def logits(self, images: torch.Tensor) -> torch.Tensor:
            seen.append(images)
            return self.values

    network: Any = Watching(method, torch.zeros(len(labels), 2))
    network.facts = method.facts(data_of())
    images = torch.full((len(labels), 3, 4, 4), 0.5)
    method.step(network, Batch((images,), labels, labels), new_state())
    return (255 * seen[0][:, 0, 0, 0]).round()


def test_a_copy_is_of_the_class_of_the_image_that_it_replaces(folder: Path) -> None:
    labels = torch.arange(400) % 2
    values = images_of(get_method("augmented-copies", {"folder": str(folder), "share": 0.75}), labels)
    assert set(values[labels == 0].tolist()) == {10, 20, 128}
    assert set(values[labels == 1].tolist()) == {200, 210, 220, 128}
    assert float((values != 128).double().mean()) == pytest.approx(0.75, abs=0.06)


def test_pictures_of_another_size_are_resized(folder: Path) -> None:
    pixels, counts = read_copies(str(folder), CLASSES, 6, 8)
    assert pixels.shape == (5, 3, 6, 8)
    assert counts.tolist() == [2, 3]
    assert np.unique(pixels).tolist() == [10, 20, 200, 210, 220]


@pytest.mark.parametrize("spec", ["augmented-copies", "augmented-copies[folder=nowhere]"])
def test_a_missing_folder_is_refused_with_the_command(spec: str) -> None:
    with raises(DataError, where="'augmented-copies'") as error:
        get_method(spec).facts(data_of())
    assert "stylize.py --content-dir" in str(error.value.hint)


def test_a_class_without_pictures_is_refused(folder: Path) -> None:
    method = get_method("augmented-copies", {"folder": str(folder)})
    with raises(DataError, where="'augmented-copies'", naming="grey"):
        method.facts(data_of((*CLASSES, "grey")))
