"""A frozen benchmark on disk: class table, image table, ``manifest.json``, fingerprints."""

from __future__ import annotations

from wordnet_splits.benchmark.manifest.loading import altered, read_manifest
from wordnet_splits.benchmark.manifest.metadata import GroupRow, ManifestData
from wordnet_splits.benchmark.manifest.parts import Manifest, Part, write_manifest

__all__ = [
    "GroupRow",
    "Manifest",
    "ManifestData",
    "Part",
    "altered",
    "read_manifest",
    "write_manifest",
]
