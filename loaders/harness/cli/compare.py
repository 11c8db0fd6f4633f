"""The command ``unknown-eval compare``: results side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.terminal.options import Json
from wordnet_splits.terminal.output import DONE, print_json, to_stderr, to_stdout

from ..comparison.side_by_side import REPLICATES, compare
from .printing import Detectors, names_of, print_tables

ResultFolders = Annotated[list[Path], typer.Argument(help="Folders that `run` wrote, on one benchmark.")]


def compare_results(
    results: ResultFolders,
    metric: Annotated[
        str | None, typer.Option(help="What to rank by; by default the primary metric of the paper.")
    ] = None,
    on: Annotated[
        str | None, typer.Option(help="pooled, id, near, far (means over sets), or the name of a set.")
    ] = None,
    detectors: Detectors = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates of the paired bootstrap over images; 0 for none.")
    ] = REPLICATES,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Detector, or 'MODEL DETECTOR', that improvement is measured from; by default MCP."
        ),
    ] = None,
    robustness: Annotated[
        str | None, typer.Option(help="Abdelzad's tables to rebuild over the models, as in 4,5,10; 2 to 10.")
    ] = None,
    json: Json = False,
) -> int:
    """Compare results: ranks, significance, robustness, improvement over MCP, agreement of draws."""
    found = compare(
        results,
        metric=metric,
        on=on,
        detectors=names_of(detectors),
        bootstrap=bootstrap,
        seed=seed_boot,
        baseline=baseline,
        robustness=None if robustness is None else _numbers(robustness),
    )
    if json:
        print_json(found.as_dict())
    else:
        print_tables(found.tables())
        for note in found.notes:
            to_stdout(note)
    if json:
        for note in found.notes:
            to_stderr(f"note: {note}")
    return DONE


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise SplitsError(
            f"{text!r} is not a list of tables", where="--robustness", hint="as in 4,5,10"
        ) from None
