"""``results.export_detector``: a detector of some results, fitted, with a threshold, for images."""

from __future__ import annotations

from types import MethodType

from ..results.accessors import register_accessor
from ..results.results import Results


@register_accessor("export_detector")
def exporter(results: Results) -> MethodType:
    """Return `deployment.export_detector`, bound to the results."""
    from .export import export_detector  # needs torch

    return MethodType(export_detector, results)
