"""`plot`: a picture of results, by the name of its kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from wordnet_splits.base import files, plotting
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.plotting import Plot

from ..comparison.entries import Given
from ..evaluation.schema import ResultTables
from .registry import get_plot, list_plots
from .selection import Subject
from .semantic import pruned_graph

SALT = "unknown-eval"
GRAPH, GRAPHML = "recalcati-4", ".graphml"
GRAPH_TITLE = "predictions as a graph from true to predicted class, pruned; a .graphml file"


def plot_data(
    results: Sequence[Given] | Given,
    what: str,
    *,
    detectors: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    metric: str | None = None,
    store: str | Path | None = None,
) -> Plot:
    """Return what a picture shows, as numbers.

    Parameters
    ----------
    what : a kind (`list_plots`). detectors : labels, all by default. groups : OOD sets, all by default.
    metric : in place of AUROC, where the kind has a choice. store : folder of activations, for ``kim-7``.

    Raises
    ------
    UnknownNameError : no such kind or set. DataError : the results lack what the kind needs.
    """
    kind = get_plot(what)
    return kind.picture(_subject(results, detectors, groups, metric, store))


def plot(
    results: Sequence[Given] | Given,
    what: str,
    out: str | Path,
    *,
    detectors: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    metric: str | None = None,
    store: str | Path | None = None,
) -> Path:
    """Draw a picture of results into an SVG, PNG or PDF file; `plot_data` has the options.

    ``recalcati-4`` is a graph and is written as GraphML.

    Raises
    ------
    OutputError : another kind of file, or it cannot be written. MissingPackageError : no matplotlib.
    """
    path = Path(out)
    if what == GRAPH:
        if path.suffix != GRAPHML:
            raise OutputError(f"{GRAPH} is a graph, written as {GRAPHML}", where=str(path))
        from ..semantics import graphml

        edges = pruned_graph(_subject(results, detectors, groups, metric, store))
        files.write_bytes(path, graphml(edges))
        return path
    plotting.check_output(path, "unknown-eval plot")
    picture = plot_data(results, what, detectors=detectors, groups=groups, metric=metric, store=store)
    plotting.save_plot(picture, path, salt=SALT)
    return path


def _subject(
    results: Sequence[Given] | Given,
    detectors: Sequence[str] | None,
    groups: Sequence[str] | None,
    metric: str | None,
    store: str | Path | None,
) -> Subject:
    given = [results] if isinstance(results, Given) else list(results)
    folder = None if store is None else Path(store)
    return Subject.of(given, detectors=detectors, groups=groups, metric=metric, store=folder)


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
