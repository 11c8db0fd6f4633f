"""Headings of metrics in tables: each label means one metric, whose key is an equal name for it."""

from __future__ import annotations

from typing import Final

LABELS: Final = {
    "accuracy": "ACC",
    "aupr_in": "AUPR-In",
    "aupr_in_trapezoid": "AUPR-In (trapezoid)",
    "aupr_out": "AUPR-Out",
    "aupr_out_trapezoid": "AUPR-Out (trapezoid)",
    "aurc": "AURC",
    "aurc_unknown": "AURC+OOD",
    "auroc": "AUROC",
    "ccr_at_fpr_0.001": "CCR at 1e-3",
    "ccr_at_fpr_0.001_nearest": "CCR at 1e-3 (nearest)",
    "ccr_at_fpr_0.01": "CCR at 1e-2",
    "ccr_at_fpr_0.01_nearest": "CCR at 1e-2 (nearest)",
    "ccr_at_fpr_0.1": "CCR at 1e-1",
    "ccr_at_fpr_0.1_nearest": "CCR at 1e-1 (nearest)",
    "ccr_at_fpr_1": "CCR at 1",
    "ccr_at_fpr_1_nearest": "CCR at 1 (nearest)",
    "detection_error": "det. error (ID positive)",
    "detection_error_ood_positive": "det. error (OOD positive)",
    "fpr95_id_positive": "FPR95 (ID positive)",
    "fpr95_ood_positive": "FPR95 (OOD positive)",
    "fpr95_ood_positive_interpolated": "FPR95 (OOD positive, interpolated)",
    "gamma": "gamma",
    "gamma_minus": "gamma-",
    "gamma_plus": "gamma+",
    "oscr": "OSCR",
}
"""Key of a metric -> its heading; other metrics are headed by their keys."""
_KEYS: Final = {label: key for key, label in LABELS.items()}


def label_of(metric: str) -> str:
    """Return the heading of a metric, given as in results.

    >>> label_of("auroc[full-spectrum]")
    'AUROC [full-spectrum]'
    """
    key, bracket, variant = metric.partition("[")
    return LABELS.get(key, key) + (f" [{variant}" if bracket else "")


def key_of_label(name: str) -> str:
    """Return the key of a metric as in results, given its key or its heading.

    >>> key_of_label("AUROC [full-spectrum]")
    'auroc[full-spectrum]'
    """
    label, bracket, variant = name.partition("[")
    label = label.strip() if bracket else label
    return _KEYS.get(label, label) + (f"[{variant}" if bracket else "")
