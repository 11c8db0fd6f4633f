"""How the images of datasets lie on disk."""

from __future__ import annotations

from wordnet_splits.datasets.sources.layouts.layout import (
    DeclaredLayout,
    Image,
    ImageFiles,
    Layout,
    Location,
    Note,
    layout_names,
    open_layout,
    register_layout,
)

__all__ = [
    "DeclaredLayout",
    "Image",
    "ImageFiles",
    "Layout",
    "Location",
    "Note",
    "layout_names",
    "open_layout",
    "register_layout",
]
