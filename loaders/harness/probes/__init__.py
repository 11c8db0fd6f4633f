"""Probes: what is computed alongside a forward pass and stored as named arrays."""

from __future__ import annotations

from .dropout import Dropout
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
    "Dropout",
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
