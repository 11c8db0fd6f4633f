"""Folders of frozen manifests: a user's, and those of the benchmarks that come with this program."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.benchmark.manifest.metadata import ManifestData, check_data

ENVIRONMENT = "WORDNET_SPLITS_MANIFESTS"
"""Environment variable with the path of a user's folder of manifests."""
CHANGELOG = "CHANGELOG.md"
"""The author's own changelog, beside a frozen manifest."""
LONGEST_NAME = 255
"""Most bytes of a folder's name."""
_VERSIONED = re.compile(r"([a-z0-9][a-z0-9-]*)@v([1-9][0-9]{0,8})")


def shipped_folder() -> Path:
    """Return the folder of the benchmarks that come with the program: the checkout's, or the package's."""
    return next((folder for folder in shipped_folders() if folder.is_dir()), shipped_folders()[0])


def shipped_folders() -> tuple[Path, ...]:
    """Return the folders that may hold the shipped benchmarks, first match first."""
    package = Path(str(files("wordnet_splits")))
    return package.parent / "manifests", package / "_manifests"


def shipped_data(name: str) -> ManifestData | None:
    """Return the ``manifest.json`` of the benchmark of that name that comes with the program."""
    path = shipped_folder() / name.partition("@")[0] / "manifest.json"
    return check_data(read_json(path, error=ManifestError), str(path)) if path.is_file() else None


def manifest_folders(manifests: Path | None = None) -> Iterator[Path]:
    """Yield the folders that may hold manifests, first match first."""
    if manifests is not None:
        yield manifests
        return
    if ENVIRONMENT in os.environ:
        yield Path(os.environ[ENVIRONMENT])
    yield from shipped_folders()


def frozen_folders(manifests: Path | None = None, *, earlier: bool = False) -> dict[str, Path]:
    """Return the folder of each frozen benchmark by its name, sorted.

    Parameters
    ----------
    earlier : include the earlier versions that `freeze` kept, as ``NAME@v1``.
    """
    folders: dict[str, Path] = {}
    for parent in manifest_folders(manifests):
        for file in parent.glob("*/manifest.json"):
            if file.is_file() and (earlier or version_of(file.parent.name) is None):
                folders.setdefault(file.parent.name, file.parent)
    return dict(sorted(folders.items()))


def version_of(name: str) -> int | None:
    """Return the version that a name as ``mine@v1`` has, None for a name without version."""
    match = _VERSIONED.fullmatch(name)
    return int(match[2]) if match else None


def frozen_folder(name: str, manifests: Path | None = None) -> Path | None:
    """Return the folder of a frozen benchmark, None where there is none.

    ``mine@v1`` is the version that `freeze` kept when it froze a later one, or the latest if it is that.
    """
    if not 0 < len(name.encode(errors="replace")) <= LONGEST_NAME:
        return None
    for parent in manifest_folders(manifests):
        if (parent / name / "manifest.json").is_file():
            return parent / name
        latest = parent / name.partition("@")[0]
        if version_of(name) is not None and (latest / "manifest.json").is_file():
            data = check_data(read_json(latest / "manifest.json", error=ManifestError), str(latest))
            if data.version == version_of(name):
                return latest
    return None


def manifest_names(manifests: Path | None = None) -> tuple[str, ...]:
    """Return the names of the frozen benchmarks, sorted."""
    return tuple(frozen_folders(manifests))
