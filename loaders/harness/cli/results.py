"""Commands on results and score tables: ``table``, ``scores`` and ``recompute``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import check_table_file
from wordnet_splits.base.progress import OnStderr
from wordnet_splits.base.tabular import terminal_width
from wordnet_splits.base.terminal.options import Cut, Json, refuse_options
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_first,
    print_json,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.hub.entries import ENTRY
from wordnet_splits.metrics.resampling import REPLICATES

from ..evaluation.benchmark_arrays import image_ids
from ..results.exported_scores import export_scores as export
from ..results.printing import Detectors, Over, import_metrics, metric_name, parse_share, split_labels
from ..results.results import ABOUT, Results
from ..results.subsets import recompute
from .main import app

if TYPE_CHECKING:
    from ..results.check import CheckedIntervals, CheckedResults

MAX_DIFFERENCES = 20
COLUMNS = ("benchmark", "model", "detector", "group", "role", "metric", "value", "n_id", "n_ood")
OF_VALUES = ("subset", "detectors")
OF_RESULTS = ("bootstrap", "seed_boot", "over", "cut")
"""Options of `recompute` that print values, and of those that write results."""


@app.command(
    "table",
    heading="Results",
    examples=[
        "unknown-eval table results",
        "unknown-eval table results --format latex --layout openood --out table.tex --json",
    ],
)
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
    from ..results.tables import format_tables

    width = terminal_width() if out is None else None
    text = format_tables(Results.read(results), table_format, layout, width)
    if out is not None:
        files.write_text(out, text)
        to_stderr(f"tables in {out}")
    result = {"format": table_format, "out": None if out is None else str(out), "text": text}
    print_result(result, json, lambda: print_lines([] if out else text.splitlines()))
    return DONE


app.group(
    "scores",
    "The scores of many networks and detectors as one table, and the ids of its images.",
    heading="Results",
)


@app.command(
    "scores export",
    examples=[
        "unknown-eval scores export results --out scores",
        "unknown-eval scores export results --out scores --overwrite --json",
    ],
)
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


@app.command(
    "scores ids",
    examples=[
        "unknown-eval scores ids digits uniform",
        "unknown-eval scores ids digits uniform --json",
    ],
)
def print_image_ids(
    benchmark: Annotated[str, typer.Argument(help="A frozen benchmark, or the folder of a manifest.")],
    group: Annotated[str, typer.Argument(help="One of its sets.")],
    split: Annotated[str, typer.Option(help="test, train or val.")] = "test",
    json: Json = False,
) -> int:
    """Print the ids of the images of a set, SOURCE/IMAGE_ID, one a line, in the benchmark's order."""
    manifest = load_manifest(benchmark)
    ids = image_ids(manifest, group, split)
    if json:
        fingerprint = manifest.images_fingerprint((split, group))
        facts = {"benchmark": manifest.name, "group": group, "split": split, "fingerprint": fingerprint}
        print_json({**facts, "ids": ids})
    else:
        for image_id in ids:
            to_stdout(image_id)
    return DONE


@app.command(
    "recompute",
    heading="Results",
    examples=[
        "unknown-eval recompute results --check",
        "unknown-eval recompute scores --metric auroc --detectors msp --out auroc.csv --json",
        "unknown-eval recompute results --bootstrap 100 --over classes --out again --json",
    ],
)
def recompute_metrics(
    context: typer.Context,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS|SCORES", help="A folder that `run`, `submit` or `scores export` wrote."
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Of RESULTS: compare with the stored values, and write nothing.")
    ] = False,
    all_intervals: Annotated[
        bool,
        typer.Option("--all-intervals", help="With --check: every interval, not those of a sample: minutes."),
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="With --check: share I of N of the entries in the folder."),
    ] = None,
    subset: Annotated[
        Path | None,
        typer.Option(
            help="Images to compute on, all by default: .csv or .parquet with a column image_id and, where "
            "that is ambiguous, source, group or benchmark."
        ),
    ] = None,
    detectors: Detectors = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="A user's metric MODULE:NAME, computed next to the built-in ones; of SCORES or a subset the "
            "metric to print, by default auroc; repeatable."
        ),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates behind the intervals of RESULTS, 0 for none.")
    ] = REPLICATES,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    over: Over = "images",
    cut: Cut = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write RESULTS to, by default in place; or file of the rows (.csv, .parquet)."
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Recompute metrics from stored scores, without the model: of results, or of any subset of images.

    Every metric of RESULTS is computed again, with intervals, and written; or compared, with --check, and
    exit code 1 where a value differs. For SCORES, --subset or --detectors the values of --metric are printed.
    """
    if check:
        refuse_options(context, [*OF_VALUES, *OF_RESULTS, "out"], "does not apply with --check")
        return _check(folder, metric, shard, all_intervals=all_intervals, json=json)
    refuse_options(context, ("all_intervals", "shard"), "only applies with --check")
    if (folder / ABOUT).is_file() and subset is None and detectors is None:
        drawn = {"bootstrap": bootstrap, "seed_boot": seed_boot, "over": over, "cut": cut}
        return _renew(folder, metric, drawn, out, json=json)
    refuse_options(context, OF_RESULTS, "only applies to all of RESULTS")
    return _print_values(folder, metric, subset, detectors, out, json=json)


def _check(
    folder: Path, metrics: list[str] | None, shard: str | None, *, all_intervals: bool, json: bool
) -> int:
    """Recompute every row of results from their scores, and compare."""
    from ..results.check import check_results
    from ..results.entries import check_entries, holds_entries

    import_metrics(metrics)
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
    if checked.newer:
        outcome += f"; newer than the results: {', '.join(checked.newer)} (`recompute` adds them)"
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


def _renew(
    results: Path, metrics: list[str] | None, drawn: Mapping[str, Any], out: Path | None, *, json: bool
) -> int:
    """Compute every metric of results again, and write them."""
    from ..results.entries import renew_entry
    from ..results.rows_from_scores import remeasure

    if out is not None and out.suffix in (".csv", ".parquet"):
        raise typer.BadParameter(
            "a file holds the rows of --subset or --detectors; give a folder", param_hint="--out"
        )
    import_metrics(metrics)
    recomputed = remeasure(results, **drawn, progress=OnStderr())
    folder = out or results
    paths = recomputed.write(folder)
    if (folder / ENTRY).exists():
        renew_entry(folder)
    rows = recomputed.results.num_rows
    intervals = rows - recomputed.results["lo"].null_count
    files = [str(path) for path in paths]
    print_result({"out": str(folder), "files": files, "rows": rows, "intervals": intervals}, json)
    place = f"in {folder}" + ("" if out else ", in place of the former rows")
    to_stderr(f"{rows:,} rows, {intervals:,} with an interval, {place}")
    return DONE


def _print_values(
    folder: Path,
    metrics: list[str] | None,
    subset: Path | None,
    detectors: str | None,
    out: Path | None,
    *,
    json: bool,
) -> int:
    """Print metrics of stored scores on a subset of their images, or write them to a file."""
    if out is not None:
        check_table_file(out)
    outcome = recompute(
        folder,
        [metric_name(name) for name in metrics or ["auroc"]],
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
