"""A frozen benchmark on disk: class table, image table, ``manifest.json``, fingerprints."""

from __future__ import annotations

from wordnet_splits.manifest.data import GroupRow, ManifestData
from wordnet_splits.manifest.manifest import Manifest, Part, write_manifest
from wordnet_splits.manifest.reading import altered, read_manifest

__all__ = [
    "GroupRow",
    "Manifest",
    "ManifestData",
    "Part",
    "altered",
    "read_manifest",
    "write_manifest",
]
