"""The figures of the study on real photographs, and the audit of what is really on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from fix_resize.auditing.aliasing import ALIASED_FROM
from fix_resize.auditing.audit import run_audit
from fix_resize.auditing.measurements import Measurements
from fix_resize.auditing.pictures import open_pictures
from fix_resize.auditing.verdict import WHITE_SHARE, PairedAudit
from fix_resize.cli.main import app
from fix_resize.resize import apply
from fix_resize.spec import get_spec
from tools.study.thresholds import (
    FIRST,
    HALVES,
    SETS,
    Rendering,
    fit,
    judge,
    reference_of,
    render,
)
from tests.fix_resize.cases import images_below
from tools.study.treatments import PART_NEAREST
from wordnet_splits.cli.main import run

BROKEN = ("nearest", "opencv-bilinear")


@pytest.fixture(scope="module")
def reference(real_data: Path) -> Measurements:
    return reference_of(real_data)


@pytest.fixture(scope="module")
def renderings(real_data: Path) -> list[Rendering]:
    pytest.importorskip("cv2")
    return [r for name, place in SETS.items() for r in render(name, real_data / place)]


def test_the_study(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = [f"{name}={real_data / place}" for name, place in SETS.items()]
    specs = [f"--spec={name}" for name in ("fix", *BROKEN)]
    command = ["study", *sets, *specs, "--root", f"cifar100={real_data}", "--json"]
    assert run(app, command, "fix-resize") == 0
    found = json.loads(capsys.readouterr().out)
    rows = {(row["set"], row["spec"]): row for row in found["rows"]}
    assert len(rows) == 3 * 3
    assert found["reference_images"] == 10_000
    fixed = rows["photographs", "fix"]
    for form in ("signed", "absolute"):
        assert 0.45 <= fixed[form]["value"] <= 0.55
        for broken in BROKEN:
            assert rows["photographs", broken][form]["value"] >= 0.75
    for (_, spec), row in rows.items():
        assert row["verdict"] == ("clean" if spec == "fix" else "aliased"), spec
        assert (row["without_originals"] == "suspicious") == row["study_only"], spec


def test_the_thresholds_are_those_of_the_first_half(renderings: list[Rendering], reference: Measurements) -> None:
    aliasing, white = fit((r for r in renderings if r.half == FIRST), reference)
    assert (aliasing.middle, white.middle) == (ALIASED_FROM, WHITE_SHARE)


@pytest.mark.parametrize("half", HALVES)
def test_the_verdict_is_right_whatever_the_content(half: str, renderings: list[Rendering]) -> None:
    """On the half that the thresholds are fitted on, and on the other."""
    for set_name, _, label, expected, made in [r for r in renderings if r.half == half]:
        found = PairedAudit([m.pair for m in made])
        assert found.verdict == expected, (set_name, label, found.sentence)


@pytest.mark.parametrize("half", HALVES)
def test_warnings_without_originals(half: str, renderings: list[Rendering], reference: Measurements) -> None:
    expected = {"fix": False, "nearest in one stage": True, "INTER_NEAREST": True, PART_NEAREST: True}
    for r in renderings:
        if r.half == half and r.label in expected:
            found = judge(r.made, reference)
            assert found.suspicious == expected[r.label], (r.set_name, r.label, found.sentence, found.white)


def test_a_set_on_disk_against_its_originals(real_data: Path, tmp_path: Path) -> None:
    """The set is written as PNG files in folders of its own, and found again by names."""
    originals = open_pictures(str(real_data / "food-101"))
    reference = open_pictures("cifar100:test", {"cifar100": real_data})
    for spec, verdict in {"fix": "clean", "opencv-bilinear": "aliased"}.items():
        for name, image in images_below(real_data / "food-101" / "images"):
            (tmp_path / spec).mkdir(exist_ok=True)
            Image.fromarray(apply(get_spec(spec), image)).save(tmp_path / spec / f"{name}.png")
        report = run_audit(open_pictures(str(tmp_path / spec)), reference, originals)
        assert (report.audit.verdict, report.pairs) == (verdict, 60)
        assert report.audit.suspicious == (spec != "fix")
