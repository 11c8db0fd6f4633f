"""Reproducible writing of plots as SVG, PNG or PDF.

A plot gives the same bytes every time, whatever the user's own settings. matplotlib (extra ``plots``) is
imported when used.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base import files
from wordnet_splits.base.drawing import BLACK, BLUE, GREY, ORANGE, figure_of
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.shapes import Panel

DARK_GROUND: Final = "#14171a"
DARK: Final[Mapping[str, str]] = {
    "#ffffff": DARK_GROUND,
    "#000000": "#e4e7ea",
    BLACK: "#e4e7ea",
    GREY: "#4a5058",
    BLUE: "#58b0ea",
    "#56b4e9": "#b5e4fa",
    ORANGE: "#ff8a3d",
    "#009e73": "#2fc99b",
    "#cc79a7": "#e39ac2",
    "#e69f00": "#f2b63c",
    "#7a5195": "#b58fd0",
    "#606060": "#a0a6ad",
    "#a6761d": "#cf9d45",
}
"""Colour of a plot -> colour where the reader prefers dark pages."""

SETTINGS: Final = {"svg.fonttype": "path", "font.family": "DejaVu Sans"}
_PATH: Final = re.compile(r' d="[^"]*"')
_DECIMALS: Final = re.compile(r"(-?\d+\.\d\d)\d+")
METADATA: Final = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@dataclass(frozen=True)
class Plot:
    """One or more panels below a title.

    Attributes
    ----------
    notes : sentences printed with the plot.
    columns : most panels side by side.
    """

    title: str
    panels: tuple[Panel, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    columns: int = 3

    def _repr_svg_(self) -> str:
        return plot_svg(self, self.title)


def save_plot(plot: Plot, path: Path, *, salt: str) -> None:
    """Draw a plot into a file; SVG, PNG or PDF by its name.

    Parameters
    ----------
    salt : seeds the ids in an SVG, so that they are the same every time.

    Raises
    ------
    OutputError : another ending, or the file cannot be written. MissingPackageError : no matplotlib.
    """
    check_output(path, "plots")
    with settings(salt):
        save(figure_of(plot.title, plot.panels, plot.columns), path)


def plot_svg(plot: Plot, salt: str) -> str:
    """Return a plot as SVG; ``salt`` distinguishes its ids from other plots' ids in the same page."""
    require_plots("plots")
    with settings(salt):
        return encoded(figure_of(plot.title, plot.panels, plot.columns), ".svg").decode()


def dark_rules(selector: str, *, important: bool = False) -> str:
    """Return CSS rules that give plots their dark colours.

    Parameters
    ----------
    selector : a selector of elements by colour, with the fields ``name`` (fill or stroke) and ``colour``.
    important : whether the rules override style attributes.
    """
    suffix = " !important" if important else ""
    return "".join(
        f"{selector.format(name=name, colour=colour)}{{{name}:{dark}{suffix}}}\n"
        for colour, dark in DARK.items()
        for name in ("fill", "stroke")
    )


def check_output(path: Path, purpose: str) -> None:
    """Raise OutputError for a file of another ending, MissingPackageError where matplotlib is absent."""
    check_ending(path)
    require_plots(purpose)


def check_ending(path: Path) -> None:
    """Raise OutputError unless a plot's file name ends in .svg, .png or .pdf."""
    if path.suffix not in METADATA:
        *suffixes, last = METADATA
        raise OutputError(f"a plot is {', '.join(suffixes)} or {last}", where=str(path))


def require_plots(purpose: str) -> None:
    """Raise MissingPackageError unless matplotlib can be imported."""
    need("matplotlib", "plots", where=purpose)


@contextmanager
def settings(salt: str) -> Iterator[None]:
    """Draw the same under every matplotlibrc of the user; letters that the font lacks become boxes.

    ``salt`` is the salt of the ids in an SVG.
    """
    from matplotlib import rc_context, rcParamsDefault

    defaults = {key: value for key, value in rcParamsDefault.items() if not key.startswith("backend")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing letters, deprecated settings
        with rc_context({**defaults, **SETTINGS, "svg.hashsalt": salt}):
            yield


def save(figure: Any, path: Path) -> None:
    """Write a matplotlib figure; SVG, PNG or PDF by the name.

    Raises
    ------
    OutputError : another ending, or the file cannot be written.
    """
    check_ending(path)
    files.write_bytes(path, encoded(figure, path.suffix))


def encoded(figure: Any, suffix: str) -> bytes:
    """Return a figure as the bytes of a file that ends in ``suffix``, one of `METADATA`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], metadata=METADATA[suffix], bbox_inches="tight")
    return _with_dark_mode(buffer.getvalue()) if suffix == ".svg" else buffer.getvalue()


def _with_dark_mode(svg: bytes) -> bytes:
    """Return an SVG of matplotlib with rounded coordinates, and dark colours for readers who prefer them."""
    text = _PATH.sub(lambda path: _DECIMALS.sub(r"\1", path.group()), svg.decode())
    # text is drawn in the default colour, which has no attribute
    rules = "svg{fill:#e4e7ea}\n" + dark_rules('[style*="{name}: {colour}"]', important=True)
    style = f'<style type="text/css">@media (prefers-color-scheme: dark){{\n{rules}}}</style>\n'
    return re.sub(r"(?=\n <metadata>)|(?=\n <defs>)", "\n " + style.strip(), text, count=1).encode()
