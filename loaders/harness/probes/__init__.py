"""Probes: what is computed alongside a forward pass and stored as named arrays."""

from __future__ import annotations

from .layer_statistic import LayerStatistic
from .odin import Odin
from .registry import (
    PROBES,
    Probe,
    for_classes,
    get_probe,
    list_probes,
    parse_probe,
    probe_name,
    register_probe,
)

__all__ = [
    "PROBES",
    "LayerStatistic",
    "Odin",
    "Probe",
    "for_classes",
    "get_probe",
    "list_probes",
    "parse_probe",
    "probe_name",
    "register_probe",
]
