"""Panels of plots as numbers and text, without any drawing, so that they can be tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Line:
    """A line through points (x, y), both (n,).

    Attributes
    ----------
    dashed : draw it as a reference.
    filled : fill the histogram below it; ``x`` are its n + 1 edges.
    colour : in place of the next one of the palette.
    value : printed behind the name in the legend.
    lo, hi : (n,) edges of a band around the line, or None.
    """

    name: str
    x: Values
    y: Values
    dashed: bool = False
    filled: bool = False
    colour: str = ""
    value: str = ""
    lo: Values | None = None
    hi: Values | None = None


@dataclass(frozen=True, eq=False)
class Lines:
    """A line plot.

    Attributes
    ----------
    steps : whether y holds from the x before it (``"pre"``) or up to the next x (``"post"``); for a histogram
        "post" with the n + 1 edges as ``x``.
    """

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    steps: Literal["", "pre", "post"] = ""


@dataclass(frozen=True)
class Point:
    """A named point; ``kind`` gives its colour, ``marker`` its shape, ``label``: its name is written."""

    name: str
    x: float
    y: float
    kind: str = ""
    label: bool = True
    marker: str = ""


@dataclass(frozen=True)
class Points:
    """A scatter plot; ``diagonal``: with the line x = y."""

    title: str
    x_label: str
    y_label: str
    points: tuple[Point, ...]
    diagonal: bool = False


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A heat map of values (rows, columns) in [0, 1]."""

    title: str
    x_label: str
    y_label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Values


@dataclass(frozen=True)
class Bar:
    """A value of a category, from ``lo`` to ``hi``; bars of the same ``series`` share a colour."""

    category: str
    value: float
    lo: float | None = None
    hi: float | None = None
    series: str = ""


@dataclass(frozen=True)
class Bars:
    """A horizontal bar chart, categories from top to bottom, the series of a category side by side."""

    title: str
    label: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Box:
    """A box plot of (minimum, three quartiles, maximum); an empty box shows ``note`` instead."""

    category: str
    quantiles: tuple[float, ...]
    note: str = ""
    colour: str = ""


@dataclass(frozen=True)
class Boxes:
    """Horizontal box plots, categories from top to bottom."""

    title: str
    label: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Ranks:
    """A critical-difference diagram: mean ranks from best to worst, and runs that are not told apart.

    Attributes
    ----------
    rows : names, best on top.
    means : their mean ranks, ascending.
    cliques : (first, last) rows of each run.
    difference : the critical difference of mean ranks, drawn as a scale.
    """

    title: str
    label: str
    rows: tuple[str, ...]
    means: tuple[float, ...]
    cliques: tuple[tuple[int, int], ...]
    difference: float


Panel = Lines | Points | HeatMap | Bars | Boxes | Ranks
