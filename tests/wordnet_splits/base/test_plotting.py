"""Every shape draws, the same bytes each time."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.raising import raises
from wordnet_splits.base.drawing import figure_of
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.plotting import Plot, save_plot, settings
from wordnet_splits.base.shapes import Bar, Bars, Box, Boxes, HeatMap, Line, Lines, Point, Points

pytest.importorskip("matplotlib")
EDGES = np.array([0.0, 1.0, 2.0])
PANELS = (
    Lines("a", "x", "y", (Line("$line", EDGES, EDGES), Line("reference", EDGES, EDGES, dashed=True))),
    Lines("b", "x", "y", (Line("filled", EDGES, np.array([1.0, 3.0]), filled=True),)),
    Lines("c", "x", "y", (Line("counts", EDGES, EDGES, colour="#ff0000"),), steps="pre"),
    Points("d", "x", "y", (Point("p", 1, 2),), diagonal=True),
    HeatMap("e", "x", "y", ("row",), ("a", "b"), np.array([[0.0, 1.0]])),
    Bars("f", "value", (Bar("a", 1, 0.5, 2), Bar("b", 2))),
    Boxes("g", "value", (Box("a", (0, 1, 2, 3, 9), colour="#00ff00"), Box("empty", (), "no data"))),
)


def test_every_shape_draws_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        save_plot(Plot("title", PANELS), tmp_path / name, salt="test")
    text = (tmp_path / "a.svg").read_bytes()
    assert text == (tmp_path / "b.svg").read_bytes()
    assert b"#ff0000" in text
    assert b"#00ff00" in text
    with raises(OutputError, where="a.gif"):
        save_plot(Plot("title", PANELS), tmp_path / "a.gif", salt="test")


def test_a_plot_has_one_legend_with_the_values_of_all_panels() -> None:
    panels = tuple(
        Lines(
            title, "x", "y", tuple(Line(f"line {n}", EDGES, EDGES, value=f"{n}.{title}") for n in range(40))
        )
        for title in "01"
    )
    with settings("test"):
        figure = figure_of("title", panels, 2)
    assert [axis.get_legend() for axis in figure.axes] == [None, None]
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert legend.get_title().get_text() == "0 | 1"
    assert texts[:2] == ["line 0 (0.0 | 0.1)", "line 1 (1.0 | 1.1)"]
    assert texts[36:] == ["and 4 more"]
    colours = [line.get_color() for line in figure.axes[0].lines]
    assert colours == [line.get_color() for line in figure.axes[1].lines]
    assert colours[36:] == ["#c8c8c8"] * 4


def test_drawn_curves_are_thinned_and_bands_drawn() -> None:
    x = np.linspace(0, 1, 100_000)
    line = Line("l", x, np.sqrt(x), lo=np.sqrt(x) / 2, hi=np.minimum(2 * np.sqrt(x), 1))
    with settings("test"):
        (axis,) = figure_of("title", (Lines("", "x", "y", (line,)),), 1).axes
    assert 10 < len(axis.lines[0].get_xdata()) < 100
    (band,) = axis.patches
    assert band.get_alpha() == 0.18


def test_svg_has_dark_colours(tmp_path: Path) -> None:
    save_plot(Plot("title", PANELS), tmp_path / "a.svg", salt="test")
    text = (tmp_path / "a.svg").read_text("utf-8")
    (style,) = re.findall(r"@media \(prefers-color-scheme: dark\)\{(.*?)</style>", text, re.DOTALL)
    assert '[style*="stroke: #0072b2"]{stroke:#58b0ea !important}' in style
    assert re.search(r'style="[^"]*stroke: #0072b2', text)
    assert "scale(0.015625)" in text  # of letters, which rounding coordinates would break


def test_panels_are_laid_out_in_columns_and_categories_from_top_to_bottom() -> None:
    with settings("test"):
        figure = figure_of("title", PANELS, 2)
    assert len(figure.axes) == 8 + 1  # a row more than 3 x 2, and the colour bar
    boxes = figure.axes[6]
    assert [label.get_text() for label in boxes.get_yticklabels()] == ["a", "empty"]
    assert boxes.get_ylim()[0] > boxes.get_ylim()[1]
    assert boxes.texts[0].get_text() == "no data"
