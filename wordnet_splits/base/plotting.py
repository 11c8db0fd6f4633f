"""What every plot shares: colours, settings of matplotlib, and the one way of writing a picture.

The same bytes every time, whatever the user's own settings. matplotlib (extra ``plots``) is imported when
used.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base import files
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.lazy import need

GREY, BLUE, ORANGE, BLACK = "#c8c8c8", "#0072b2", "#d55e00", "#202020"
"""Reference; clean or far; altered or near; text. The colour-blind can tell blue from orange."""

SETTINGS: Final = {"svg.fonttype": "path", "font.family": "DejaVu Sans"}
METADATA: Final = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def require_plots(where: str) -> None:
    """Raise MissingPackageError unless matplotlib can be imported."""
    need("matplotlib", "plots", where=where)


@contextmanager
def settings(salt: str) -> Iterator[None]:
    """Draw the same whatever the user's matplotlibrc says; letters that the font lacks become boxes.

    ``salt`` is that of the ids in an SVG.
    """
    from matplotlib import rc_context, rcParamsDefault

    defaults = {key: value for key, value in rcParamsDefault.items() if not key.startswith("backend")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing letters, deprecated settings
        with rc_context({**defaults, **SETTINGS, "svg.hashsalt": salt}):
            yield


def save(figure: Any, path: Path) -> None:
    """Write a figure; SVG, PNG or PDF by the name.

    Raises
    ------
    OutputError : another ending, or the file cannot be written.
    """
    check_ending(path)
    files.write_bytes(path, encoded(figure, path.suffix))


def encoded(figure: Any, suffix: str) -> bytes:
    """Return a figure as the bytes of a file that ends in ``suffix``, one of `METADATA`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], metadata=METADATA[suffix])
    return buffer.getvalue()


def check_ending(path: Path) -> None:
    """Raise OutputError for a picture that is neither SVG nor PNG nor PDF by its name."""
    if path.suffix not in METADATA:
        *others, last = METADATA
        raise OutputError(f"a picture is {', '.join(others)} or {last}", where=str(path))
