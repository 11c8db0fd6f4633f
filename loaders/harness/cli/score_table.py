"""Commands on the open score table: ``scores export`` and ``recompute``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.parquet import check_table_file
from wordnet_splits.base.progress import OnStderr
from wordnet_splits.terminal.options import Json
from wordnet_splits.terminal.output import DONE, LEFT_OUT, print_result, print_table, to_stderr

from ..score_table.export import export_scores as export
from ..score_table.recomputing import recompute as compute
from .printing import Detectors, metric_name, split_labels

COLUMNS = ("benchmark", "model", "detector", "group", "role", "metric", "value", "n_id", "n_ood")


def export_scores(
    entries: Annotated[
        list[Path], typer.Argument(help="Folders that `run` or `submit` wrote, on any benchmarks.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the table.")] = Path("scores"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a table in that folder.")] = False,
    json: Json = False,
) -> int:
    """Write the scores of entries as one Parquet table: network by image by detector.

    The exit code is 3 where an entry does not have the scores of some runs.
    """
    exported = export(entries, out, overwrite=overwrite, progress=OnStderr())
    print_result(exported, json)
    for note in (*exported.left_out, *exported.notes):
        to_stderr(f"note: {note}")
    to_stderr(
        f"{exported.scores:,} scores of {exported.models:,} networks and {exported.detectors:,} detectors on "
        f"{exported.images:,} images, {exported.bytes:,} bytes, in {out}"
    )
    return LEFT_OUT if exported.left_out else DONE


def recompute_metrics(
    scores: Annotated[Path, typer.Option(help="A folder that `scores export` wrote.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(help="A metric, a user's as MODULE:NAME, by default auroc; repeatable."),
    ] = None,
    subset: Annotated[
        Path | None,
        typer.Option(
            help="Images to compute on, all by default: .csv or .parquet with a column image_id and, where "
            "that is ambiguous, source, group or benchmark."
        ),
    ] = None,
    detectors: Detectors = None,
    out: Annotated[Path | None, typer.Option(help="File to write the rows to: .csv or .parquet.")] = None,
    json: Json = False,
) -> int:
    """Compute metrics of a score table on any subset of its images."""
    if out is not None:
        check_table_file(out)
    outcome = compute(
        scores,
        [metric_name(name) for name in metric or ["auroc"]],
        subset=subset,
        detectors=split_labels(detectors),
        progress=OnStderr(),
    )
    if out is not None:
        outcome.write(out)
    sizes = [size.as_dict() for size in outcome.sizes]
    facts = {"rows": outcome.rows(), "sets": sizes, "notes": outcome.notes}
    cells = [[row[name] for name in COLUMNS] for row in outcome.rows()]
    right = ("value", "n_id", "n_ood")
    print_result(facts, json, None if out else lambda: print_table(COLUMNS, cells, right=right))
    for note in outcome.notes:
        to_stderr(f"note: {note}")
    if subset is not None:
        for size in outcome.sizes:
            to_stderr(f"{size.benchmark}: {size.images:,} of {size.of:,} images of {size.group}")
    return DONE
