"""``results.export_detector``: a detector of some results, fitted, with a threshold, for images."""

from __future__ import annotations

from types import MethodType

from wordnet_splits.base.lazy import need

from ..results.results import Results, register_accessor


@register_accessor("export_detector")
def exporter(results: Results) -> MethodType:
    """Return `deployment.export_detector`, bound to the results."""
    need("torch", "torch", where="results.export_detector")
    from .export import export_detector

    return MethodType(export_detector, results)
