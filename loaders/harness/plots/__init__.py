"""Pictures of results: a registry of kinds, each a function from results to numbers, drawn by its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordnet_splits.base.lazy import names_of

if TYPE_CHECKING:
    from .plot_results import plot, plot_data
    from .registry import get_plot, list_plots

__all__ = ["get_plot", "list_plots", "plot", "plot_data"]

__getattr__ = names_of(
    __name__, {"registry": ("get_plot", "list_plots"), "plot_results": ("plot", "plot_data")}
)
