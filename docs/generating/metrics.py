"""Every metric of the registry: direction, inputs, convention, and papers."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from generating.markdown import sections, spoken, table
from generating.python import function
from wordnet_splits.metrics import METRICS, Metric, calibration

NEEDS = {
    "id": "ID confidences",
    "ood": "OOD confidences",
    "correct": "whether each ID image is classified correctly",
    "probabilities": "softmax probabilities and labels of ID images",
}
CALIBRATION = (
    calibration.ece,
    calibration.ece_equal_mass,
    calibration.brier_score,
    calibration.nll,
    calibration.static_calibration_error,
    calibration.adaptive_calibration_error,
)


def lines() -> Iterator[str]:
    """Yield a table of all metrics, then each family with its papers and its functions."""
    families: dict[str, dict[str, list[Metric]]] = {}
    of_classifiers = (
        Metric(function.__name__, False, ("probabilities",), function, function) for function in CALIBRATION
    )
    for metric in (*METRICS.registered.values(), *of_classifiers):  # variants of one function together
        family = families.setdefault(metric.function.__module__, {})
        family.setdefault(metric.function.__name__, []).append(metric)
    rows = [
        (names(variants), arrow(variants[0]), spoken(variants[0].summary))
        for _, family in sorted(families.items())
        for variants in family.values()
    ]
    yield from ("## Overview", "")
    yield from table(("metric", "better", "what"), rows)
    for module, functions in sorted(families.items()):
        yield from section(module, functions)


def names(variants: list[Metric]) -> str:
    """Return the names of a function's metrics."""
    return ", ".join(f"`{metric.name}`" for metric in variants)


def arrow(metric: Metric) -> str:
    """Return the good direction."""
    return "higher" if metric.higher_is_better else "lower"


def section(module: str, functions: dict[str, list[Metric]]) -> Iterator[str]:
    """Yield a module's docstring, its papers and its metrics."""
    said = sections(sys.modules[module])
    yield f"## {said[''].partition(':')[0]}"
    yield ""
    yield spoken(said[""])
    yield ""
    if "References" in said:
        yield f"Papers: {spoken(said['References'])}"
        yield ""
    for name, variants in functions.items():
        yield f"### {names(variants)}"
        yield ""
        needs = ", ".join(NEEDS[need] for need in variants[0].needs)
        yield f"{arrow(variants[0]).capitalize()} is better. Needs {needs}."
        yield ""
        yield from function(name, getattr(sys.modules[module], name))
