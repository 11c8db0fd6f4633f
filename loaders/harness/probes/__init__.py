"""Probes: named arrays that are computed alongside a forward pass and stored."""

from __future__ import annotations

from .dropout import Dropout
from .input_steps import MahalanobisStep, Odin
from .model_outputs import Cosine, MethodOutput, Negatives
from .registry import (
    PROBES,
    Probe,
    get_probe,
    list_probes,
    parse_probe,
    probe_name,
    register_probe,
    restrict_to_columns,
)
from .stages import Gram, LayerStatistic, RankFeat, Stages

__all__ = [
    "PROBES",
    "Cosine",
    "Dropout",
    "Gram",
    "LayerStatistic",
    "MahalanobisStep",
    "MethodOutput",
    "Negatives",
    "Odin",
    "Probe",
    "RankFeat",
    "Stages",
    "get_probe",
    "list_probes",
    "parse_probe",
    "probe_name",
    "register_probe",
    "restrict_to_columns",
]
