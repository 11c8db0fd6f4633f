"""The registry of plots: a decorator for functions from results to the numbers of a plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.plotting import Plot

from .selection import Selection

PlotFunction = Callable[[Selection], Plot]
MODULES = ("bars", "curves", "distributions", "heat_maps", "scatters", "semantic")
"""Modules of this package with registered functions."""


@dataclass(frozen=True)
class PlotKind:
    """A registered plot.

    Attributes
    ----------
    title : one sentence. paper : the figure that it reproduces, or "". function : results -> numbers.
    """

    name: str
    title: str
    paper: str
    function: PlotFunction

    def plot(self, selection: Selection) -> Plot:
        """Return the numbers of the plot.

        Raises
        ------
        DataError : the results lack data for it.
        """
        plot = self.function(selection)
        if not plot.panels:
            raise DataError(
                f"there is no OOD set, so {self.name} has nothing to show", where=selection.benchmark
            )
        return replace(plot, notes=(selection.left_out, *plot.notes)) if selection.left_out else plot


_KINDS: dict[str, PlotKind] = {}


def plot_kind(name: str, title: str, *, paper: str = "") -> Callable[[PlotFunction], PlotFunction]:
    """Register the decorated function as the plot called ``name``."""

    def register_plot(function: PlotFunction) -> PlotFunction:
        if name in _KINDS:
            raise ValueError(f"two plots are called {name!r}")
        _KINDS[name] = PlotKind(name, title, paper, function)
        return function

    return register_plot


def list_plots() -> tuple[PlotKind, ...]:
    """Return every kind of plot, sorted by name."""
    for module in MODULES:
        import_module(f"{__package__}.{module}")
    return tuple(kind for _, kind in sorted(_KINDS.items()))


def get_plot(name: str) -> PlotKind:
    """Return the kind of plot called ``name``.

    Raises
    ------
    UnknownNameError : there is none; similar names are offered.
    """
    kinds = {kind.name: kind for kind in list_plots()}
    if name not in kinds:
        raise unknown("plot", name, kinds, where="--what")
    return kinds[name]
