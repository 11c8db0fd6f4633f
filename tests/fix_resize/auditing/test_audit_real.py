"""The figures of the study on real photographs, and the audit of what is really on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from fix_resize.auditing.audit import run_audit
from fix_resize.auditing.sets import Pictures, open_pictures
from fix_resize.cli.main import app
from fix_resize.resize import apply
from fix_resize.spec import get_spec
from tests.fix_resize.auditing.thresholds import SETS, reference_of, rows
from tests.fix_resize.cases import images_below
from wordnet_splits.cli.main import run

BROKEN = ("nearest", "opencv-bilinear")


@pytest.fixture(scope="module")
def reference(real_data: Path) -> Pictures:
    return open_pictures("cifar100:test", {"cifar100": real_data})


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


@pytest.mark.parametrize("which", SETS)
def test_the_verdict_is_right_whatever_the_content(which: str, real_data: Path) -> None:
    """On both halves: the one that the thresholds are taken from, and the other."""
    pytest.importorskip("cv2")
    for label, expected, audits in rows(real_data / SETS[which], reference_of(real_data)):
        for half, found in audits.items():
            assert found.verdict == expected, (label, half, found.sentence)
            if label.startswith(("nearest in", "INTER_NEAREST", "30% nearest")):
                assert found.suspicious, (label, half, found.white)  # without originals, too
            if label == "fix":
                assert not found.suspicious, (half, found.white)


def test_a_set_on_disk_against_its_originals(real_data: Path, reference: Pictures, tmp_path: Path) -> None:
    """The set is written as PNG files in folders of its own, and found again by names."""
    originals = open_pictures(str(real_data / "food-101"))
    for spec, verdict in {"fix": "clean", "opencv-bilinear": "aliased"}.items():
        for name, image in images_below(real_data / "food-101" / "images"):
            (tmp_path / spec).mkdir(exist_ok=True)
            Image.fromarray(apply(get_spec(spec), image)).save(tmp_path / spec / f"{name}.png")
        report = run_audit(open_pictures(str(tmp_path / spec)), reference, originals)
        assert (report.audit.verdict, report.pairs) == (verdict, 60)
        assert report.audit.suspicious == (spec != "fix")
