"""The registry of plots: one decorator on the function that turns results into a picture's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.plotting import Plot

from .selection import Subject

Data = Callable[[Subject], Plot]
HOMES = ("bars", "curves", "distributions", "heat_maps", "scatters", "semantic")
"""Modules of this package whose functions are registered."""


@dataclass(frozen=True)
class PlotKind:
    """A registered plot.

    Attributes
    ----------
    title : what it shows, in a sentence. paper : the figure that it draws, empty where it is nobody's.
    data : results -> numbers.
    """

    name: str
    title: str
    paper: str
    data: Data

    def picture(self, subject: Subject) -> Plot:
        """Return its numbers.

        Raises
        ------
        DataError : the results lack what it needs.
        """
        found = self.data(subject)
        if not found.panels:
            raise DataError(
                f"there is no OOD set, so {self.name} has nothing to show", where=subject.benchmark
            )
        return found


_KINDS: dict[str, PlotKind] = {}


def plot_kind(name: str, title: str, *, paper: str = "") -> Callable[[Data], Data]:
    """Register the decorated function as the plot called ``name``."""

    def register(function: Data) -> Data:
        if name in _KINDS:
            raise ValueError(f"two plots are called {name!r}")
        _KINDS[name] = PlotKind(name, title, paper, function)
        return function

    return register


def list_plots() -> tuple[PlotKind, ...]:
    """Return every kind of plot, sorted by name."""
    for home in HOMES:
        import_module(f"{__package__}.{home}")
    return tuple(kind for _, kind in sorted(_KINDS.items()))


def get_plot(name: str) -> PlotKind:
    """Return the kind of plot called ``name``.

    Raises
    ------
    UnknownNameError : there is none; the near names are given.
    """
    kinds = {kind.name: kind for kind in list_plots()}
    if name not in kinds:
        raise unknown("plot", name, kinds, where="--what")
    return kinds[name]
