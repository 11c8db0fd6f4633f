"""Options and output that commands on results share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.tabular import terminal_width
from wordnet_splits.base.terminal.output import DONE, print_lines, print_result, to_stderr
from wordnet_splits.metrics.registry import import_metric

from ..data.parameters import split_list
from .table import Table, TableReport, tables_as_text

STORE: Final = Path("build/activations")
"""Default folder of activations."""
Detectors = Annotated[
    str | None, typer.Option(help="Detectors as the results call them, joined by commas; all by default.")
]

Over = Annotated[
    str,
    typer.Option(
        help="What conclusions are about: these images, other classes or other subtrees of classes."
    ),
]

UserMetrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", help="A user's metric MODULE:NAME, computed next to the built-in ones; repeatable."
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        min=1,
        help="Images of a forward pass; by default proposed for the model, its inputs and the device.",
    ),
]
TrustModel = Annotated[
    bool,
    typer.Option(
        "--trust-model", help="Run code that a file is (a TorchScript or exported program) or names."
    ),
]
Deadline = Annotated[
    float,
    typer.Option(help="Seconds for a batch of a program with loops (.onnx, .ts, .pt2), which may not end."),
]
MeanOption = Annotated[
    str | None,
    typer.Option(
        "--mean",
        help="Mean that the model's inputs are normalised by, of pixels in [0, 1]: a number, or R,G,B; asked "
        "for where neither the model nor the benchmark states it.",
    ),
]
StdOption = Annotated[
    str | None, typer.Option("--std", help="Standard deviation of that normalisation: a number, or R,G,B.")
]


def import_metrics(paths: Sequence[str] | None) -> None:
    """Import users' metrics, which are computed from then on."""
    for path in paths or ():
        if ":" not in path:
            hint = "every built-in metric is computed without --metric"
            raise DataError(f"a user's metric must be MODULE:NAME, got {path!r}", where="--metric", hint=hint)
        import_metric(path, where="--metric")


def metric_name(text: str) -> str:
    """Return the name of a metric, given as such or as MODULE:NAME, which is imported."""
    return import_metric(text, where="--metric")[0] if ":" in text else text


def split_labels(text: str | None) -> list[str] | None:
    """Return the labels in a list of detectors, without splitting at commas in brackets."""
    return None if text is None else split_list(text)


def print_tables(tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
    """Print tables, each below its title, then the notes, folded to the terminal's width."""
    print_lines(tables_as_text(tables, notes, terminal_width()).splitlines())


def print_report(report: TableReport, *, json: bool) -> int:
    """Print the tables and notes of a report; with ``--json`` notes go to stderr too."""
    print_result(report, json, lambda: print_tables(report.tables(), report.notes))
    for note in report.notes if json else ():
        to_stderr(f"note: {note}")
    return DONE


SHARE: Final = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


def parse_share(text: str) -> tuple[int, int]:
    """Return (i, n) of ``i/n``, a job's number from 1 and the number of jobs."""
    match = SHARE.fullmatch(text)
    index, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= index <= count:
        raise DataError(
            f"{text!r} is not a share of a job", where="--shard", hint="as in --shard 3/8: 1 to 8"
        )
    return index, count
