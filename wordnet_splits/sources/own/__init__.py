"""Datasets of a user's own: what a declaration and a layout make of a folder."""

from __future__ import annotations

from wordnet_splits.sources.own.layout import Image, Layout, Place, layout_names, open_layout
from wordnet_splits.sources.own.source import OwnSource, own_class

__all__ = ["Image", "Layout", "OwnSource", "Place", "layout_names", "open_layout", "own_class"]
