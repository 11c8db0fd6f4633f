"""Where models come from: one file per kind, one registry."""

from __future__ import annotations

from . import exported, huggingface, timm_models, torchvision_models, trained
from .registry import Loaded, Request, model_sources

__all__ = [
    "Loaded",
    "Request",
    "exported",
    "huggingface",
    "model_sources",
    "timm_models",
    "torchvision_models",
    "trained",
]
