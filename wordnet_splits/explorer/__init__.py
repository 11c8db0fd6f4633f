"""The explorer: benchmarks, classes, audits and results as a folder of static pages."""

from __future__ import annotations

from wordnet_splits.explorer.writing import Site, make_site

__all__ = ["Site", "make_site"]
