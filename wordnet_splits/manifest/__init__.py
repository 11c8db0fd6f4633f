"""A frozen benchmark on disk: class table, image table, ``manifest.json``, fingerprints."""

from __future__ import annotations

from wordnet_splits.manifest.data import GroupRow, ManifestData
from wordnet_splits.manifest.finding import find_manifest, manifest_names
from wordnet_splits.manifest.manifest import (
    Manifest,
    Part,
    altered,
    load_classes,
    load_manifest,
    open_manifest,
    read_manifest,
    write_manifest,
)

__all__ = [
    "GroupRow",
    "Manifest",
    "ManifestData",
    "Part",
    "altered",
    "find_manifest",
    "load_classes",
    "load_manifest",
    "manifest_names",
    "open_manifest",
    "read_manifest",
    "write_manifest",
]
