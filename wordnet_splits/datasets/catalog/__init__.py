"""The classes of every source and the images whose ids are known without pixels."""

from __future__ import annotations

from wordnet_splits.datasets.catalog.table import CATALOGS as CATALOGS
from wordnet_splits.datasets.catalog.table import CONFIDENCE as CONFIDENCE
from wordnet_splits.datasets.catalog.table import FIXED_COLUMNS as FIXED_COLUMNS
from wordnet_splits.datasets.catalog.table import Catalog as Catalog
from wordnet_splits.datasets.catalog.table import CatalogClass as CatalogClass
from wordnet_splits.datasets.catalog.table import catalog_names as catalog_names
from wordnet_splits.datasets.catalog.table import known_sources as known_sources
from wordnet_splits.datasets.catalog.table import load_catalog as load_catalog
from wordnet_splits.datasets.catalog.table import read_catalog as read_catalog
