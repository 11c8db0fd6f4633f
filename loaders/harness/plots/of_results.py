"""``results.plot.roc()``: the kinds of plots as methods, for a notebook."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from wordnet_splits.base.plotting import Plot

from ..evaluation.rows import ResultTables
from .registry import get_plot, list_plots
from .run import plot, plot_data


class ResultPlots:
    """The plots of some results: ``risk_coverage()`` is the kind ``risk-coverage``.

    Without a file a method returns the numbers, which a notebook shows as a picture; with one it writes it.
    Options are those of `plot_data`.
    """

    def __init__(self, results: ResultTables) -> None:
        self._results = results

    def __getattr__(self, name: str) -> Callable[..., Plot | Path]:
        if name.startswith("_"):  # what copying and notebooks ask every object for
            raise AttributeError(name)
        return partial(self._made, get_plot(name.replace("_", "-")).name)

    def __dir__(self) -> list[str]:
        return [kind.name.replace("-", "_") for kind in list_plots()]

    def _made(self, what: str, out: str | Path | None = None, **options: Any) -> Plot | Path:
        if out is None:
            return plot_data(self._results, what, **options)
        return plot(self._results, what, out, **options)
