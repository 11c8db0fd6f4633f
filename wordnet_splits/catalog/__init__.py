"""The classes of every source and the images whose ids are known without pixels."""

from __future__ import annotations

from wordnet_splits.catalog.catalog import (
    CATALOGS,
    CONFIDENCE,
    FIXED_COLUMNS,
    Catalog,
    CatalogClass,
    catalog_names,
    known_sources,
    load_catalog,
    read_catalog,
)

__all__ = [
    "CATALOGS",
    "CONFIDENCE",
    "FIXED_COLUMNS",
    "Catalog",
    "CatalogClass",
    "catalog_names",
    "known_sources",
    "load_catalog",
    "read_catalog",
]
