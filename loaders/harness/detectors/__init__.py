"""Detectors: stored arrays to confidence, higher = more in-distribution.

Each is a frozen dataclass (or a function) under a decorator that says what it needs, where it comes from and
what may be swept. ``list_detectors("k*")``, ``get_detector("knn", k=100)``; a user's own with ``@register``.
"""

from __future__ import annotations

from . import (
    ensembles,
    gaussians,
    geometry,
    layers,
    logits,
    neighbours,
    opengan,
    openmax,
    posteriors,
    probes,
    sampling,
    shaping,
)
from .choosing import Preset, from_object, parse_detectors, preset, preset_names
from .paper import Paper
from .registry import (
    METHODS,
    Chosen,
    Detector,
    Method,
    describe,
    get_detector,
    get_method,
    list_detectors,
    register,
)

__all__ = [
    "METHODS",
    "Chosen",
    "Detector",
    "Method",
    "Paper",
    "Preset",
    "describe",
    "ensembles",
    "from_object",
    "gaussians",
    "geometry",
    "get_detector",
    "get_method",
    "layers",
    "list_detectors",
    "logits",
    "neighbours",
    "opengan",
    "openmax",
    "parse_detectors",
    "posteriors",
    "preset",
    "preset_names",
    "probes",
    "register",
    "sampling",
    "shaping",
]
