"""Mixed images and softened labels against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from loaders.harness.training.methods import Batch, get_method
from loaders.harness.training.methods.mixing import blend, draw_beta, paste, softened_cross_entropy

from .oracles.formulas import left_by_rectangle
from .stand_ins import FixedOutputs, loss_of, new_state

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
    share = draw_beta(new_state(), 0.1, 1.0)
    torch.testing.assert_close(
        seen[-1][3:, 0, 0, 0], torch.tensor([0.0, 1, 2]) * share + (1 - share) * (torch.arange(3) + 3)
    )
