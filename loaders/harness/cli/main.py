"""The command ``unknown-eval``: evaluate models on benchmarks, check results, list detectors, train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.progress import OnStderr
from wordnet_splits.terminal.options import Json, add_command, make_program
from wordnet_splits.terminal.output import DONE, NEGATIVE, print_first, print_json, to_stdout
from wordnet_splits.terminal.runner import start

from . import train
from .compare import compare_results
from .detectors import show_detectors
from .nearness import correlate_nearness
from .plot import plot_results
from .remeasure import remeasure_results
from .report import report_results
from .run import run
from .submit import submit_results

if TYPE_CHECKING:
    from ..evaluation.check import CheckedIntervals, CheckedResults

SHOWN_DIFFERENCES = 20

RUN = "unknown-eval run --benchmark digits --model trained:models/digits --out results"

app = make_program(
    "unknown-eval",
    "Measure what a vision model does not know: any model and detector on any frozen benchmark.",
    [train.EXAMPLE, RUN],
)


def check_results_folder(
    folder: Annotated[Path, typer.Argument(help="A folder that `run` wrote, or a folder of entries.")],
    all_intervals: Annotated[
        bool,
        typer.Option("--all-intervals", help="Recompute every interval, not those of a sample: minutes."),
    ] = False,
    json: Json = False,
) -> int:
    """Recompute every row of results from their stored confidences; exit 1 where one differs."""
    from ..evaluation.check import check_results
    from ..leaderboard.check import check_entries, holds_entries

    if holds_entries(folder):
        entries = check_entries(folder, all_intervals=all_intervals, progress=OnStderr())
        if json:
            print_json(entries.as_dict())
        else:
            for entry in entries.entries:
                to_stdout(f"{Path(entry.folder).name}: {_outcome(entry)}")
        return DONE if entries.ok else NEGATIVE
    found = check_results(folder, all_intervals=all_intervals, progress=OnStderr())
    if json:
        print_json(found.as_dict())
    else:
        to_stdout(_outcome(found))
    return DONE if found.ok else NEGATIVE


def _outcome(found: CheckedResults) -> str:
    """Print what differs and return the sum of it."""
    lines = [
        f"{d.table}: {d.row}: {d.column} stored {d.stored}, recomputed {d.recomputed}"
        for d in found.differences
    ]
    print_first(lines, SHOWN_DIFFERENCES, write=to_stdout)
    outcome = "all recompute" if found.ok else f"{len(found.differences):,} differ"
    if not found.compared:
        return found.benchmark if found.ok else f"{found.benchmark}: {outcome}"
    counts = f"{found.compared:,} rows, {found.values:,} values, {found.exact:,} equal to the last bit"
    return f"{counts}; {_intervals(found.intervals)}; {found.benchmark}: {outcome}"


def _intervals(found: CheckedIntervals) -> str:
    """Say how many of the intervals were recomputed, and of what where not all were."""
    if not found.stored:
        return "no intervals"
    if found.recomputed == found.stored:
        return f"all {found.stored:,} intervals recomputed"
    of = f" ({'; '.join(found.of)})" if found.of else ""
    return f"{found.recomputed:,} of {found.stored:,} intervals recomputed{of}, all with --all-intervals"


train.register(app)
add_command(app, "run", run, [RUN, f"{RUN} --detectors msp,knn[k=10] --bootstrap 100 --json"])
check = "unknown-eval check-results results"
add_command(app, "check-results", check_results_folder, [check, f"{check} --json"])
REMEASURE = "unknown-eval remeasure results"
add_command(
    app, "remeasure", remeasure_results, [REMEASURE, f"{REMEASURE} --bootstrap 100 --out again --json"]
)
SUBMIT = "unknown-eval submit results --by me --name digits-linear --to entries"
add_command(app, "submit", submit_results, [SUBMIT, f"{SUBMIT} --note 'One layer.' --json"])
COMPARE = "unknown-eval compare results"
add_command(
    app,
    "compare",
    compare_results,
    [COMPARE, f"{COMPARE} --metric auroc --on near --detectors 'msp,knn[k=10]' --json"],
)
NEARNESS = "unknown-eval nearness results"
add_command(app, "nearness", correlate_nearness, [NEARNESS, f"{NEARNESS} --detectors 'msp,knn[k=10]' --json"])
add_command(
    app,
    "plot",
    plot_results,
    ["unknown-eval plot --what list", "unknown-eval plot results --what roc --group uniform --out roc.svg"],
)
REPORT = "unknown-eval report results"
add_command(app, "report", report_results, [REPORT, f"{REPORT} --bootstrap 20 --out page.html --json"])
add_command(
    app, "detectors", show_detectors, ["unknown-eval detectors", "unknown-eval detectors 'm*' --json"]
)


def main() -> None:
    """Run ``unknown-eval``."""
    start(app, "unknown-eval")


if __name__ == "__main__":
    main()
