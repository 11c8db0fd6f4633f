"""The datasets this package reads: shipped ones and declared ones, by name."""

from __future__ import annotations

from wordnet_splits.datasets.sources.by_name import (
    check_source,
    open_source,
    recognise,
    root_variable,
    source_class,
    source_info,
    source_names,
)
from wordnet_splits.datasets.sources.layouts.layout import Raw
from wordnet_splits.datasets.sources.source import SCAN_SCHEMA, Source, SourceInfo, register_source

__all__ = [
    "SCAN_SCHEMA",
    "Raw",
    "Source",
    "SourceInfo",
    "check_source",
    "open_source",
    "recognise",
    "register_source",
    "root_variable",
    "source_class",
    "source_info",
    "source_names",
]
