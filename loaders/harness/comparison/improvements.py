"""Kim's improvement over MCP, and full-spectrum against standard evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.metrics import interval

from ..detectors import get_spec
from ..evaluation.metric_rows import FULL_SPECTRUM, MEAN, UNKNOWN_ROLES
from .entries import Draw
from .ranking import Ranked, Ranking, higher_is_better

BASELINE = "mcp"


@dataclass(frozen=True)
class Improvement:
    """Kim's figure 5, in percent: 100 (AURC of MCP - AURC)/AURC of MCP (our reading), with its interval."""

    model: str
    detector: str
    percent: float
    lo: float | None
    hi: float | None


def improvements(ranking: Ranking, baseline: str = BASELINE, *, level: float = 0.95) -> list[Improvement]:
    """Return how much each entry improves on the baseline, in the ranking's order; positive is better.

    Parameters
    ----------
    baseline : a detector, or a model and a detector with a space between: the first such entry.

    Raises
    ------
    DataError : there is no such entry, or its value is 0.
    """
    index = next((n for n, entry in enumerate(ranking.entries) if _is_baseline(entry, baseline)), None)
    if index is None:
        names = ", ".join(f"{entry.model} {entry.detector}".strip() for entry in ranking.entries)
        raise DataError(f"no {baseline} to improve on", where=ranking.benchmark, hint=f"there are {names}")
    base = ranking.entries[index].mean
    if base == 0:
        raise DataError(f"the {ranking.metric} of {baseline} is 0, so nothing is a share of it")
    factor = 100 if ranking.higher_is_better else -100
    rows = []
    for n, entry in enumerate(ranking.entries):
        percent = factor * (entry.mean - base) / base
        lo = hi = None
        if ranking.replicates is not None:
            values, base_values = ranking.replicates[n], ranking.replicates[index]
            percents = factor * (values - base_values) / np.where(base_values == 0, np.nan, base_values)
            _, lo, hi = interval(percent, percents, level=level)
        rows.append(Improvement(entry.model, entry.detector, percent, lo, hi))
    return rows


def has_improvements(ranking: Ranking) -> bool:
    """Return whether the ranking is by Kim's pooled AURC and has an MCP that can be improved on."""
    of_mcp = [entry.mean for entry in ranking.entries if _is_baseline(entry, BASELINE)]
    return ranking.metric.startswith("aurc_unknown") and bool(of_mcp) and of_mcp[0] > 0


def _is_baseline(entry: Ranked, baseline: str) -> bool:
    model, _, detector = baseline.rpartition(" ")
    if model and entry.model != model:
        return False
    name = _registered_name(detector) or detector
    return entry.detector == detector or _registered_name(entry.detector) == name


def _registered_name(label: str) -> str | None:
    """Return the name of a detector without parameters, whatever alias is its label; None for any other."""
    try:
        return get_spec(label).name
    except SplitsError:
        return None


@dataclass(frozen=True)
class SpectrumRow:
    """A metric's mean over near or far sets, standard and with covariate-shifted ID counted as ID."""

    model: str
    detector: str
    role: str
    metric: str
    standard: float
    full_spectrum: float
    lost: float


def against_full_spectrum(draw: Draw, metrics: Sequence[str] = ("auroc",)) -> list[SpectrumRow]:
    """Return both values of each entry; nothing where the benchmark has no covariate-shifted ID."""
    rows = []
    for entry in draw.entries:
        for role in UNKNOWN_ROLES:
            for metric in metrics:
                standard = entry.values(metric, MEAN, role)
                full = entry.values(metric + FULL_SPECTRUM, MEAN, role)
                if standard and full:
                    means = float(np.mean(standard)), float(np.mean(full))
                    lost = (means[0] - means[1]) * (1 if higher_is_better(metric, draw) else -1)
                    rows.append(SpectrumRow(*entry.label, role, metric, *means, lost))
    return rows
