"""The audit of a set on disk, made from real photographs."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from fix_resize.auditing.set_audit import audit_images
from fix_resize.decode import decode
from fix_resize.resize import apply
from fix_resize.spec import get_spec
from wordnet_splits.benchmark.image_sets import open_images


@pytest.mark.oracle
def test_a_set_on_disk_against_its_originals(real_data: Path, tmp_path: Path) -> None:
    """The set is written as PNG files in folders of its own, and found again by names."""
    originals = open_images(str(real_data / "food-101"))
    reference = open_images("cifar100:test", {"cifar100": real_data})
    for spec, verdict in {"fix": "clean", "opencv-bilinear": "aliased"}.items():
        (tmp_path / spec).mkdir()
        for path in (p for p in (real_data / "food-101" / "images").rglob("*") if p.is_file()):
            image = decode(path.read_bytes()).image
            Image.fromarray(apply(get_spec(spec), image)).save(tmp_path / spec / f"{path.stem}.png")
        report = audit_images(open_images(str(tmp_path / spec)), reference, originals)
        assert (report.audit.verdict, report.pairs) == (verdict, 60)
        assert report.audit.suspicious == (spec != "fix")
