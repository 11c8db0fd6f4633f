"""Where models come from: one file per kind, one registry."""

from __future__ import annotations

from . import exported, huggingface, timm_models, torchvision_models, trained
from .registry import SOURCES, LoadedModel, ModelRequest

__all__ = [
    "SOURCES",
    "LoadedModel",
    "ModelRequest",
    "exported",
    "huggingface",
    "timm_models",
    "torchvision_models",
    "trained",
]
