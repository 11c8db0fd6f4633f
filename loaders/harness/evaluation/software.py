"""What an evaluation ran with: versions, the commit of a checkout, and the day."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PROGRAM = "wordnet-splits"
LIBRARIES = ("numpy", "scipy")
TORCH_LIBRARIES = ("torch", "torchvision", "timm", "transformers", "onnxruntime")
"""Packages whose versions are recorded where a network ran."""


def software(*, with_torch: bool) -> dict[str, str]:
    """Return name -> version of what runs, with ``commit`` in a checkout and ``date`` (of UTC).

    ``SOURCE_DATE_EPOCH`` (seconds since 1970) sets the date.

    Parameters
    ----------
    with_torch : whether networks ran here; not for arrays that were computed elsewhere.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(seconds), UTC) if seconds.isdecimal() else datetime.now(UTC)
    names = (PROGRAM, *LIBRARIES, *(TORCH_LIBRARIES if with_torch else ()))
    versions = {name: found for name in names if (found := _version(name))}
    commit = commit_of(Path(__file__).parents[3])
    return {
        **versions,
        **({"commit": commit} if commit else {}),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "date": now.strftime("%Y-%m-%d"),
    }


@cache
def commit_of(folder: Path) -> str:
    """Return the commit of a checkout, with ``-dirty`` where files differ from it; "" where there is none."""
    if not (folder / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
