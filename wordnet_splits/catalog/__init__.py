"""The classes of every source and the images whose ids are known without pixels."""

from __future__ import annotations

from wordnet_splits.catalog.catalog import CATALOGS as CATALOGS
from wordnet_splits.catalog.catalog import CONFIDENCE as CONFIDENCE
from wordnet_splits.catalog.catalog import FIXED_COLUMNS as FIXED_COLUMNS
from wordnet_splits.catalog.catalog import Catalog as Catalog
from wordnet_splits.catalog.catalog import CatalogClass as CatalogClass
from wordnet_splits.catalog.catalog import catalog_names as catalog_names
from wordnet_splits.catalog.catalog import known_sources as known_sources
from wordnet_splits.catalog.catalog import load_catalog as load_catalog
from wordnet_splits.catalog.catalog import read_catalog as read_catalog
