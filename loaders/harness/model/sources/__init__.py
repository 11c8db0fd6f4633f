"""Where models come from: one file per kind, one registry."""

from __future__ import annotations

from . import exported, huggingface, timm_models, torchvision_models, trained
from .registry import SOURCES, Loaded, Request

__all__ = [
    "SOURCES",
    "Loaded",
    "Request",
    "exported",
    "huggingface",
    "timm_models",
    "torchvision_models",
    "trained",
]
