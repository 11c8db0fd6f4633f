"""Where models come from: one file per kind, one registry."""

from __future__ import annotations

from . import exported, huggingface, python, timm_models, trained, vision
from .registry import Loaded, model_source, model_sources, open_model

__all__ = [
    "Loaded",
    "exported",
    "huggingface",
    "model_source",
    "model_sources",
    "open_model",
    "python",
    "timm_models",
    "trained",
    "vision",
]
