"""Commands on results and score tables: ``check-results``, ``remeasure``, ``submit``, ``scores``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import check_table_file
from wordnet_splits.base.progress import OnStderr
from wordnet_splits.base.tabular import terminal_width
from wordnet_splits.base.terminal.options import Json, add_command, make_family
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_first,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)
from wordnet_splits.hub.entries import ENTRY
from wordnet_splits.metrics.uncertainty import REPLICATES

from ..results.exported_scores import export_scores as export
from ..results.printing import Detectors, UserMetrics, import_metrics, metric_name, parse_share, split_labels
from ..results.subsets import recompute as compute

if TYPE_CHECKING:
    from ..results.check import CheckedIntervals, CheckedResults

MAX_DIFFERENCES = 20


COMMANDS = ("check-results", "remeasure", "table", "recompute", "scores")


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    check = "unknown-eval check-results results"
    add_command(app, "check-results", check_results_folder, [check, f"{check} --json"])
    again = "unknown-eval remeasure results"
    again_in_full = f"{again} --bootstrap 100 --out again --json"
    add_command(app, "remeasure", remeasure_results, [again, again_in_full])
    table = "unknown-eval table results"
    latex = f"{table} --format latex --layout openood --out table.tex --json"
    add_command(app, "table", print_result_tables, [table, latex])
    export = "unknown-eval scores export results --out scores"
    examples = [export, f"{export} --overwrite --json"]
    scores = make_family(app, "scores", "The scores of many networks and detectors as one table.", examples)
    add_command(scores, "export", export_scores, examples)
    recompute = "unknown-eval recompute --scores scores --metric auroc"
    of_one = f"{recompute} --detectors msp --out auroc.csv --json"
    add_command(app, "recompute", recompute_metrics, [recompute, of_one])


def check_results_folder(
    folder: Annotated[Path, typer.Argument(help="A folder that `run` wrote, or a folder of entries.")],
    all_intervals: Annotated[
        bool,
        typer.Option("--all-intervals", help="Recompute every interval, not those of a sample: minutes."),
    ] = False,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="Check share I of N of the entries in the folder.")
    ] = None,
    metric: UserMetrics = None,
    json: Json = False,
) -> int:
    """Recompute every row of results from their stored confidences; exit 1 where one differs."""
    from ..leaderboard.submission import check_entries, holds_entries
    from ..results.check import check_results

    import_metrics(metric)
    if holds_entries(folder):
        share = (1, 1) if shard is None else parse_share(shard)
        entries = check_entries(folder, share=share, all_intervals=all_intervals, progress=OnStderr())

        def print_entries() -> None:
            for entry in entries.entries:
                to_stdout(f"{Path(entry.folder).name}: {_outcome(entry)}")

        print_result(entries, json, print_entries)
        return DONE if entries.ok else NEGATIVE
    if shard is not None:
        hint = "give the folder of several entries"
        raise DataError("holds one entry, which is not divided", where=str(folder), hint=hint)
    checked = check_results(folder, all_intervals=all_intervals, progress=OnStderr())
    print_result(checked, json, lambda: to_stdout(_outcome(checked)))
    return DONE if checked.ok else NEGATIVE


def _outcome(checked: CheckedResults) -> str:
    """Print the differences and return their summary."""
    lines = [
        f"{d.table}: {d.row}: {d.column} stored {d.stored}, recomputed {d.recomputed}"
        for d in checked.differences
    ]
    print_first(lines, MAX_DIFFERENCES, write=to_stdout)
    outcome = "all recompute" if checked.ok else f"{len(checked.differences):,} differ"
    if checked.not_installed:
        names = ", ".join(checked.not_installed)
        outcome += f"; not recomputed, as they are not installed: {names} (--metric MODULE:NAME)"
    if not checked.compared:
        return checked.benchmark if checked.ok else f"{checked.benchmark}: {outcome}"
    counts = f"{checked.compared:,} rows, {checked.values:,} values, {checked.exact:,} equal to the last bit"
    return f"{counts}; {_interval_counts(checked.intervals)}; {checked.benchmark}: {outcome}"


def _interval_counts(intervals: CheckedIntervals) -> str:
    """Return how many of the intervals were recomputed, and of which detectors."""
    if not intervals.stored:
        return "no intervals"
    if intervals.recomputed == intervals.stored:
        return f"all {intervals.stored:,} intervals recomputed"
    detectors = f" ({'; '.join(intervals.of)})" if intervals.of else ""
    counts = f"{intervals.recomputed:,} of {intervals.stored:,}"
    return f"{counts} intervals recomputed{detectors}, all with --all-intervals"


def print_result_tables(
    results: Annotated[Path, typer.Argument(help="A folder that `run` wrote.")],
    table_format: Annotated[
        str, typer.Option("--format", help="text, latex (booktabs) or markdown.")
    ] = "text",
    layout: Annotated[
        str | None,
        typer.Option(
            help="kim, palechor, abdelzad, openood, recalcati or plain; by default the benchmark's."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A file to write to, in place of stdout.")] = None,
    json: Json = False,
) -> int:
    """Print the tables of results in the layout of a paper, as text, LaTeX or Markdown."""
    from ..results.results import Results
    from ..results.tables import format_tables

    width = terminal_width() if out is None else None
    text = format_tables(Results.read(results), table_format, layout, width)
    if out is not None:
        files.write_text(out, text)
        to_stderr(f"tables in {out}")
    result = {"format": table_format, "out": None if out is None else str(out), "text": text}
    print_result(result, json, lambda: print_lines([] if out else text.splitlines()))
    return DONE


def remeasure_results(
    results: Annotated[Path, typer.Argument(help="A folder that `run` wrote.")],
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates behind intervals, 0 for none.")
    ] = REPLICATES,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    metric: UserMetrics = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to; by default in place of the results.")
    ] = None,
    json: Json = False,
) -> int:
    """Compute every metric of results again from their scores, with intervals; the model is not needed."""
    from ..leaderboard.submission import renew_entry
    from ..results.rows_from_scores import remeasure

    import_metrics(metric)
    recomputed = remeasure(results, bootstrap=bootstrap, seed_boot=seed_boot, progress=OnStderr())
    folder = out or results
    paths = recomputed.write(folder)
    if (folder / ENTRY).exists():
        renew_entry(folder)
    rows = recomputed.results.num_rows
    intervals = rows - recomputed.results["lo"].null_count
    files = [str(path) for path in paths]
    print_result({"out": str(folder), "files": files, "rows": rows, "intervals": intervals}, json)
    to_stderr(f"{rows:,} rows, {intervals:,} with an interval, in {folder}")
    return DONE


COLUMNS = ("benchmark", "model", "detector", "group", "role", "metric", "value", "n_id", "n_ood")


def export_scores(
    entries: Annotated[
        list[Path], typer.Argument(help="Folders that `run` or `submit` wrote, on any benchmarks.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the table.")] = Path("scores"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a table in that folder.")] = False,
    json: Json = False,
) -> int:
    """Write the scores of entries as one Parquet table a benchmark: a row an image, a column a detector.

    The exit code is 3 where an entry does not have the scores of some runs.
    """
    exported = export(entries, out, overwrite=overwrite, progress=OnStderr())
    print_result(exported, json)
    for note in exported.left_out:
        to_stderr(f"note: {note}")
    to_stderr(
        f"{exported.scores:,} scores of {exported.models:,} networks and {exported.detectors:,} detectors on "
        f"{exported.images:,} images, {exported.bytes:,} bytes, in {out}"
    )
    return LEFT_OUT if exported.left_out else DONE


def recompute_metrics(
    scores: Annotated[Path, typer.Option(help="A folder that `scores export` or `run` wrote.")],
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
    """Compute metrics of stored scores on any subset of their images."""
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
