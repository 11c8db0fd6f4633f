"""What pictures are made of: numbers and words, without any drawing, so that they can be tested."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Array


@dataclass(frozen=True, eq=False)
class Line:
    """A line through points (x, y), both (n,); ``dashed`` for a reference."""

    name: str
    x: Array
    y: Array
    dashed: bool = False


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines in one panel; ``steps``: y holds from each x to the next, as in a histogram."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    steps: bool = False


@dataclass(frozen=True)
class Point:
    """A named point; ``kind`` gives its colour, ``label`` whether its name is written beside it."""

    name: str
    x: float
    y: float
    kind: str = ""
    label: bool = True


@dataclass(frozen=True)
class Points:
    """A scatter plot; ``diagonal``: with the line x = y."""

    title: str
    x_label: str
    y_label: str
    points: tuple[Point, ...]
    diagonal: bool = False


@dataclass(frozen=True, eq=False)
class Heat:
    """A heat map: values (rows, columns) in [0, 1]."""

    title: str
    x_label: str
    y_label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Array


@dataclass(frozen=True)
class Bar:
    """A value from ``lo`` to ``hi``, in a category; bars of one ``series`` share a colour."""

    category: str
    value: float
    lo: float | None = None
    hi: float | None = None
    series: str = ""


@dataclass(frozen=True)
class Bars:
    """Values by category, from top to bottom, beside each other where a category has several series."""

    title: str
    label: str
    bars: tuple[Bar, ...]


Shape = Lines | Points | Heat | Bars
