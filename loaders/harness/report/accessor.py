"""``results.plot``: the plots of some results."""

from __future__ import annotations

from ..results.results import register_accessor
from ..results.schema import ResultTables
from .plots.plot_results import ResultPlots


@register_accessor("plot")
def plots_of(results: ResultTables) -> ResultPlots:
    """Return the plots: ``results.plot.roc()`` for a notebook, ``results.plot.roc("roc.svg")`` for a file."""
    return ResultPlots(results)
