"""The benchmarks that come with this program: the checkout's ``manifests/``, or the package's."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.manifest.data import ManifestData, check_data


def shipped_folder() -> Path:
    """Return the folder of the benchmarks that come with the program: the checkout's, or the package's."""
    return next((folder for folder in shipped_folders() if folder.is_dir()), shipped_folders()[0])


def shipped_folders() -> tuple[Path, ...]:
    """Return the folders that may hold them, first match first."""
    package = Path(str(files("wordnet_splits")))
    return package.parent / "manifests", package / "_manifests"


def shipped_data(name: str) -> ManifestData | None:
    """Return the ``manifest.json`` of the benchmark of that name that comes with the program."""
    path = shipped_folder() / name.partition("@")[0] / "manifest.json"
    return check_data(read_json(path, error=ManifestError), str(path)) if path.is_file() else None
