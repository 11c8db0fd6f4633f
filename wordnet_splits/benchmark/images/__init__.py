"""A benchmark's images as memory-mapped arrays."""

from __future__ import annotations

from wordnet_splits.benchmark.images.store import check_store, open_store, part_paths

__all__ = ["check_store", "open_store", "part_paths"]
