"""Detectors: stored arrays to confidence, higher = more in-distribution.

A detector is a frozen dataclass or a function under a decorator that declares its needs, its paper and its
sweep. ``list_detectors("k*")``, ``get_detector("knn", k=100)``; users add theirs with ``@register``.
"""

from __future__ import annotations

from .parsing import Preset, detector_from_object, get_preset, parse_detectors, preset_names
from .registry import (
    DETECTORS,
    ConfiguredDetector,
    Detector,
    DetectorSpec,
    Paper,
    detector_spec,
    get_detector,
    get_spec,
    list_detectors,
    register,
)
from .text import zero_shot_arrays

__all__ = [
    "DETECTORS",
    "ConfiguredDetector",
    "Detector",
    "DetectorSpec",
    "Paper",
    "Preset",
    "detector_from_object",
    "detector_spec",
    "get_detector",
    "get_preset",
    "get_spec",
    "list_detectors",
    "parse_detectors",
    "preset_names",
    "register",
    "zero_shot_arrays",
]
