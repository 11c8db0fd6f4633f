"""The command ``unknown-eval remeasure``: metrics and intervals of stored results, without the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.progress import OnStderr
from wordnet_splits.leaderboard import ENTRY
from wordnet_splits.metrics.uncertainty import REPLICATES
from wordnet_splits.terminal.options import Json
from wordnet_splits.terminal.output import DONE, print_json, to_stderr

from ..evaluation.recompute import remeasure
from ..leaderboard.submit import renew


def remeasure_results(
    results: Annotated[Path, typer.Argument(help="A folder that `run` wrote.")],
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates behind intervals, 0 for none.")
    ] = REPLICATES,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to; by default in place of the results.")
    ] = None,
    json: Json = False,
) -> int:
    """Compute every metric of results again from their scores, with intervals; the model is not needed."""
    again = remeasure(results, bootstrap=bootstrap, seed_boot=seed_boot, progress=OnStderr())
    folder = out or results
    written = again.write(folder)
    if (folder / ENTRY).exists():
        renew(folder)
    intervals = again.results.num_rows - again.results["lo"].null_count
    if json:
        counts = {"rows": again.results.num_rows, "intervals": intervals}
        print_json({"out": str(folder), "files": [str(file) for file in written], **counts})
    to_stderr(f"{again.results.num_rows:,} rows, {intervals:,} with an interval, in {folder}")
    return DONE
