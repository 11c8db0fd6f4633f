"""A picture beside fix of its original: clean, filtered, aliased or altered, whatever was done afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from fix_resize.auditing.aliasing import SAME_WITHIN, Original, Pair
from fix_resize.auditing.measurements import Scores
from fix_resize.auditing.set_audit import PairedAudit, audit_scores, fix_at
from fix_resize.spec import get_spec
from tests.fix_resize.auditing.treatments import MIXTURES, TREATMENTS, Photo
from tests.fix_resize.made_images import photo

FIX = get_spec("fix")
PHOTOS = [Photo(Image.fromarray(photo(n, 300 + 7 * n, 340))) for n in range(20)]
ORIGINALS = [Original(taken.image, FIX) for taken in PHOTOS]


def pairs_of(label: str) -> list[Pair]:
    if label.startswith("INTER"):
        pytest.importorskip("cv2")
    make = TREATMENTS[label].reduce
    return [original.compare(make(taken)) for original, taken in zip(ORIGINALS, PHOTOS, strict=True)]


# what JPEG does to the colours of noise is a low-pass filter; to photographs it is not
@pytest.mark.parametrize("label", [label for label in TREATMENTS if "JPEG" not in label])
def test_every_way_to_make_a_set_has_its_verdict(label: str) -> None:
    found = PairedAudit(pairs_of(label))
    assert found.verdict == TREATMENTS[label].verdict, found.sentence


@pytest.mark.parametrize("label", MIXTURES)
def test_a_part_of_a_set_is_enough(label: str) -> None:
    some, of, first, other = MIXTURES[label]
    pairs = [
        a if n % of < some else b
        for n, (a, b) in enumerate(zip(pairs_of(first), pairs_of(other), strict=True))
    ]
    found = PairedAudit(pairs)
    assert found.verdict == "aliased"
    assert found.shares["aliased"] == pytest.approx(some / of, abs=0.05)


def test_aliasing_is_measured_in_parts_of_that_of_nearest_neighbour() -> None:
    whole = [pair.aliasing for pair in pairs_of("nearest in one stage")]
    assert np.median(whole) == pytest.approx(1, abs=0.05)
    assert max(pair.aliasing for pair in pairs_of("Lanczos")) < 0.2
    assert all(pair.unexplained < 0.01 for pair in pairs_of("nearest"))


def test_clean_ends_where_it_says() -> None:
    original = ORIGINALS[0]
    inside = original.fix.astype(int) + np.where(np.indices((32, 32, 3)).sum(0) % 2, 1, -1)
    assert original.compare(inside.clip(0, 255).astype(np.uint8)).finding == "clean"
    brighter = original.compare(np.clip(original.fix.astype(int) + 3, 0, 255).astype(np.uint8))
    assert brighter.difference > SAME_WITHIN
    assert brighter.finding == "filtered"
    assert original.compare(255 - original.fix).difference > 10
    noise = np.random.default_rng(63).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    assert original.compare(noise).finding == "altered"


def test_pictures_without_detail_or_with_few_pixels() -> None:
    flat = Original(Image.new("RGB", (300, 400), (90, 120, 30)), FIX)
    assert flat.compare(flat.fix) == Pair(0.0, 0.0, 0.0, "clean")
    assert flat.compare(flat.fix + np.uint8(9)).finding == "filtered"
    small = Original(PHOTOS[0].image, fix_at((8, 8)))
    assert small.compare(255 - small.fix).finding == "altered"
    tiny = Original(Image.fromarray(photo(3, 2, 2)), FIX)  # every pixel is enlarged
    assert tiny.compare(tiny.fix).finding == "clean"
    assert np.isfinite(tiny.compare(np.asarray(PHOTOS[0].image.resize((32, 32))))[:3]).all()


def test_verdicts_by_the_shares_of_findings() -> None:
    def verdict(**times: int) -> str:
        return PairedAudit([Pair(0, 0, 0, name) for name, n in times.items() for _ in range(n)]).verdict

    assert verdict(clean=95, aliased=5) == "clean"
    assert verdict(clean=94, aliased=6) == "aliased"
    assert verdict(clean=80, filtered=12, aliased=8) == "filtered"
    assert verdict(filtered=89, aliased=11) == "aliased"
    assert verdict(filtered=40, altered=60) == "altered"


def test_warnings_without_originals() -> None:
    rng = np.random.default_rng(64)
    rough, white = rng.normal(20, 2, 500), rng.uniform(0, 0.2, 500)
    reference = Scores(rough, white)
    assert audit_scores(reference, reference).verdict == "no warning"
    rougher = audit_scores(Scores(rough + 8, white), reference)
    assert (rougher.verdict, rougher.passed) == ("suspicious", False)
    some = np.where(np.arange(500) % 10 < 3, 0.8, white)  # three of ten were decimated
    found = audit_scores(Scores(rough, some), reference)
    assert found.verdict == "suspicious"
    assert found.white.lo < found.white.value < found.white.hi
    assert audit_scores(Scores(rough[:4], some[:4]), reference).white.lo < 0.35  # few pictures prove little
