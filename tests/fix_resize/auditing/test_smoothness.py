"""The smoothness score: its formula on toy pictures, its figures on real ones, and the verdicts."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fix_resize.auditing.auroc import Estimate
from fix_resize.auditing.smoothness import Audit, audit, smoothness, total_variation
from fix_resize.resize import apply_many
from fix_resize.spec import get_spec, spec_names
from tests.fix_resize.cases import images_below
from wordnet_splits.errors import DataError

SETS = {"photographs": "imagenet/train", "textures": "dtd/images", "food": "food-101/images"}
SPECS = tuple(name for name in spec_names() if get_spec(name).side == 32)
BROKEN = tuple(name for name in SPECS if get_spec(name).study_only)


def test_total_variation_by_hand() -> None:
    picture = np.zeros((3, 4, 3), np.uint8)
    picture[0, 1] = (3, 4, 0)  # of the 2 x 3 pixels that have both neighbours it is one, and one's right one
    assert total_variation(picture[None]).tolist() == [(5 + 5 + 5) / 6]
    picture[2, 3] = 255  # the corner is nobody's right or lower neighbour among those
    assert total_variation(picture[None]).tolist() == [(5 + 5 + 5) / 6]
    picture = np.zeros((2, 2, 3), np.uint8)
    picture[0, 1], picture[1, 0] = (2, 3, 6), (0, 0, 9)
    assert total_variation([picture]).tolist() == [7 + 9]
    assert total_variation(np.full((2, 5, 5, 3), 200, np.uint8)).tolist() == [0, 0]


def test_differences_do_not_wrap() -> None:
    rough = np.zeros((2, 2, 3), np.uint8)
    rough[0, 0] = 255
    assert total_variation([rough])[0] == pytest.approx(2 * 255 * np.sqrt(3))


def test_batches_and_single_pictures_agree() -> None:
    pictures = np.random.default_rng(50).integers(0, 256, (1100, 8, 9, 3), dtype=np.uint8)
    np.testing.assert_allclose(total_variation(pictures), total_variation(list(pictures)), rtol=1e-12)
    assert total_variation(pictures[:0]).shape == (0,)
    for bad in (pictures[0].astype(float), pictures[0][:1], pictures[0][:, :, :1]):
        with pytest.raises(DataError, match="2 x 2"):
            total_variation([bad])


def test_the_score_is_the_distance_from_the_references_mean() -> None:
    assert smoothness(np.array([1.0, 6.0]), np.array([3.0, 5.0])).tolist() == [3, 2]


@pytest.fixture(scope="session")
def reference(real_data: Path) -> np.ndarray:
    """Total variation of the 10,000 test images of CIFAR-100."""
    with (real_data / "cifar-100-python" / "test").open("rb") as file:
        rows = pickle.load(file, encoding="bytes")[b"data"]
    return total_variation(np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)))


@pytest.fixture(scope="session")
def measured(real_data: Path) -> Callable[[str, str], np.ndarray]:
    """Return the total variation of one of `SETS` after a spec."""
    images: dict[str, list[Image.Image]] = {}
    known: dict[tuple[str, str], np.ndarray] = {}

    def measure(which: str, spec: str) -> np.ndarray:
        if which not in images:
            images[which] = [image for _, image in images_below(real_data / SETS[which])]
        if (which, spec) not in known:
            known[which, spec] = total_variation(apply_many(get_spec(spec), images[which]))
        return known[which, spec]

    return measure


# Signed and unsigned AUROC under fix, to three digits, as they were measured apart from this code.
FIGURES = {"photographs": (0.499, 0.491), "textures": (0.452, 0.670), "food": (0.734, 0.585)}


@pytest.mark.parametrize("which", SETS)
def test_figures_under_fix(
    which: str, reference: np.ndarray, measured: Callable[[str, str], np.ndarray]
) -> None:
    found = audit(measured(which, "fix"), reference)
    assert (found.signed.value, found.unsigned.value) == pytest.approx(FIGURES[which], abs=6e-4)
    assert found.verdict == "no warning"


def test_fix_hides_the_resizer_and_the_broken_ones_show(
    reference: np.ndarray, measured: Callable[[str, str], np.ndarray]
) -> None:
    fixed = audit(measured("photographs", "fix"), reference)
    assert 0.45 <= fixed.signed.value <= 0.55
    assert 0.45 <= fixed.unsigned.value <= 0.55
    for name in BROKEN:
        found = audit(measured("photographs", name), reference)
        assert found.signed.value >= 0.75
        assert found.unsigned.value >= 0.75
        assert found.verdict == "suspicious"


@pytest.mark.parametrize("which", SETS)
def test_the_paired_verdict_is_right_whatever_the_content(
    which: str, reference: np.ndarray, measured: Callable[[str, str], np.ndarray]
) -> None:
    rendered = measured(which, "fix")
    verdicts = {name: audit(measured(which, name), reference, rendered).verdict for name in SPECS}
    assert {name for name, verdict in verdicts.items() if verdict == "clean"} == {"fix", "fix-direct"}
    assert set(verdicts.values()) == {"clean", "altered"}


def test_verdicts_in_words() -> None:
    sure, wide = Estimate(0.8, 0.75, 0.85), Estimate(0.72, 0.60, 0.84)
    assert Audit(sure, sure, None, "suspicious").sentence.startswith(
        "suspicious (interval above 0.70, from 0.750)"
    )
    assert "proves nothing" in Audit(wide, wide, None, "no warning").sentence
    near = Audit(sure, sure, Estimate(0.48, 0.4, 0.6), "clean")
    assert near.sentence == "clean: 2.0 points from its own fix rendering, within 3"
    off = Audit(sure, sure, Estimate(0.87, 0.8, 0.9), "altered")
    assert off.sentence == "altered: 37.0 points from its own fix rendering, beyond 3"


def test_verdicts_turn_where_they_say() -> None:
    rng = np.random.default_rng(51)
    base = rng.normal(10, 1, 300)
    assert audit(base, base).verdict == "no warning"
    assert audit(base + 5, base).verdict == "suspicious"
    assert audit(base, base, base).verdict == "clean"
    assert audit(base + 0.5, base, base).verdict == "altered"
    assert audit(base - 0.5, base, base).verdict == "altered"  # smoother is not fix either
