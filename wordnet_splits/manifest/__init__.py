"""A frozen benchmark on disk: class table, image table, ``manifest.json``, fingerprints."""

from __future__ import annotations

from wordnet_splits.manifest.manifest import (
    Manifest,
    Part,
    find_manifest,
    load_manifest,
    locked,
    manifest_names,
    write_manifest,
)

__all__ = ["Manifest", "Part", "find_manifest", "load_manifest", "locked", "manifest_names", "write_manifest"]
