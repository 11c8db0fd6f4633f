"""What goes into the wheel, and how large it is."""

from __future__ import annotations

import subprocess
import tomllib
import zlib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
MiB = 1 << 20


@pytest.fixture(scope="module")
def packed() -> list[str]:
    """The files that pyproject.toml puts into the wheel."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    excluded = [f":(exclude){name}" for name in wheel["exclude"]]
    asked = ["git", "ls-files", "-z", "--", *wheel["only-include"], *excluded]
    listed = subprocess.run(asked, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name]


def test_the_wheel_stays_small(packed):
    sizes = {name: len(zlib.compress((REPOSITORY / name).read_bytes())) for name in packed}
    assert 30 * MiB < sum(sizes.values()) <= 40 * MiB
    assert sum((REPOSITORY / name).stat().st_size for name in packed if name[:10] == "manifests/") <= 40 * MiB


def test_it_holds_data_and_no_results(packed):
    assert "manifests/digits/manifest.json" in packed
    assert "wordnet_splits/data/recipes/digits.toml" in packed
    assert not [name for name in packed if "results/" in name]
