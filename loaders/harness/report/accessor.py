"""`plot`: a plot of results, by the name of its kind, and ``results.plot``: the plots of some results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wordnet_splits.base import files, plotting
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.plotting import Plot

from ..comparison.entries import ResultsOrFolder
from ..results.results import register_accessor
from ..results.scores import ResultTables
from .plots.charts import pruned_graph
from .plots.selection import Selection, get_plot, list_plots, plot_data

SALT = "unknown-eval"
GRAPH, GRAPHML = "recalcati-4", ".graphml"
GRAPH_TITLE = "predictions as a graph from true to predicted class, pruned; a .graphml file"


def plot(
    results: Sequence[ResultsOrFolder] | ResultsOrFolder,
    kind: str,
    out: str | Path,
    **options: Any,
) -> Path:
    """Draw results into an SVG, PNG or PDF file.

    ``recalcati-4`` is a graph and is written as GraphML.

    Parameters
    ----------
    kind : name of the plot.
    options : see `selection.SelectionOptions`.

    Raises
    ------
    OutputError : another kind of file, or it cannot be written. MissingPackageError : no matplotlib.
    """
    path = Path(out)
    if kind == GRAPH:
        if path.suffix != GRAPHML:
            raise OutputError(f"{GRAPH} is a graph, written as {GRAPHML}", where=str(path))
        from ..comparison.semantics import graphml

        options.pop("best", None)
        files.write_bytes(path, graphml(pruned_graph(Selection.from_results(results, **options))))
        return path
    plotting.check_output(path, "unknown-eval plot")
    plotting.save_plot(plot_data(results, kind, **options), path, salt=SALT)
    return path


@register_accessor("plot")
class ResultPlots:
    """The plots of some results: ``risk_coverage()`` is the kind ``risk-coverage``.

    Without a file a method returns the numbers, which a notebook draws; with a file it writes the plot.
    Options are `SelectionOptions`.
    """

    def __init__(self, results: ResultTables) -> None:
        self._results = results

    def __getattr__(self, name: str) -> Callable[..., Plot | Path]:
        if name.startswith("_"):  # attributes that copying and notebooks look up in every object
            raise AttributeError(name)
        return partial(self._plot, get_plot(name.replace("_", "-")).name)

    def __dir__(self) -> list[str]:
        return [kind.name.replace("-", "_") for kind in list_plots()]

    def _plot(self, kind: str, out: str | Path | None = None, **options: Any) -> Plot | Path:
        if out is None:
            return plot_data(self._results, kind, **options)
        return plot(self._results, kind, out, **options)
