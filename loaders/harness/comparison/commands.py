"""Commands that compare results: compare, nearness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.terminal.options import Cut, Json

from ..cli.main import app
from ..results.metadata import check_level
from ..results.printing import Detectors, Over, metric_name, print_report, split_labels
from . import class_nearness, side_by_side
from .across import compare_across
from .class_nearness import nearness
from .side_by_side import compare

ResultFolders = Annotated[list[Path], typer.Argument(help="Folders that `run` wrote, on one benchmark.")]


@app.command(
    "compare",
    heading="Compare",
    examples=[
        "unknown-eval compare results",
        "unknown-eval compare results --metric auroc --on near --detectors 'msp,knn[k=10]' --json",
        "unknown-eval compare results --across --over classes",
        "unknown-eval compare results --flattery all",
    ],
)
def compare_results(
    results: Annotated[
        list[Path], typer.Argument(help="Folders that `run` wrote, on one benchmark (--across: on any).")
    ],
    metric: Annotated[
        str | None,
        typer.Option(
            help="Metric to rank by, a user's as MODULE:NAME; by default the primary metric of the paper."
        ),
    ] = None,
    on: Annotated[
        str | None, typer.Option(help="pooled, id, near, far (means over sets), or the name of a set.")
    ] = None,
    detectors: Detectors = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates of the paired bootstrap; 0 for none.")
    ] = side_by_side.REPLICATES,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Detector, or 'MODEL DETECTOR', that improvement is measured from; by default the best MCP."
        ),
    ] = None,
    robustness: Annotated[
        str | None, typer.Option(help="Abdelzad's tables to rebuild over the models, as in 4,5,10; 2 to 10.")
    ] = None,
    formula: Annotated[
        str, typer.Option(help="Of the scores in these tables: cv (eq. 8), shortfall, or MODULE:NAME.")
    ] = "cv",
    across: Annotated[
        bool,
        typer.Option(
            "--across",
            help="Rank over benchmarks, or over classes or subtrees: Friedman's test and post-hoc tests.",
        ),
    ] = False,
    over: Over = "images",
    cut: Cut = None,
    flattery: Annotated[
        str | None,
        typer.Option(
            metavar="DETECTOR",
            help="How much a choice among its values on the test classes flatters; `all`: among detectors.",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Compare results: ranks, significance, robustness, improvement over MCP, agreement of draws."""
    metric = None if metric is None else metric_name(metric)
    level = check_level(over, cut)
    if across:
        drawn = bootstrap != side_by_side.REPLICATES or seed_boot
        if baseline or robustness or flattery or formula != "cv" or drawn:
            message = "a bootstrap, a baseline, robustness tables and --flattery do not apply with --across"
            raise SplitsError(message, where="unknown-eval compare")
        found = compare_across(
            results, detectors=detectors, metric=metric, on=on or "pooled", over=level, cut=cut
        )
        return print_report(found, json=json)
    comparison = compare(
        results,
        metric=metric,
        on=on,
        detectors=detectors,
        over=level,
        cut=cut,
        bootstrap=bootstrap,
        seed=seed_boot,
        baseline=baseline,
        robustness=None if robustness is None else _table_numbers(robustness),
        formula=formula,
        flattery=flattery,
    )
    return print_report(comparison, json=json)


def _table_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise SplitsError(
            f"{text!r} is not a list of tables", where="--robustness", hint="as in 4,5,10"
        ) from None


@app.command(
    "nearness",
    heading="Compare",
    examples=[
        "unknown-eval nearness results",
        "unknown-eval nearness results --detectors 'msp,knn[k=10]' --json",
    ],
)
def correlate_nearness(
    results: ResultFolders,
    detectors: Detectors = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="An OOD set to take classes of, all near and far by default; repeatable."),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates of the bootstrap over OOD classes; 0 for none.")
    ] = class_nearness.REPLICATES,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    benchmark: Annotated[
        str | None, typer.Option(help="Benchmark or its folder, by default the name in the results.")
    ] = None,
    json: Json = False,
) -> int:
    """Correlate how near OOD classes are with how hard they are to detect, by detector and measure."""
    labels = split_labels(detectors)
    outcome = nearness(
        results,
        detectors=labels,
        groups=group,
        bootstrap=bootstrap,
        seed=seed_boot,
        benchmark=benchmark,
    )
    return print_report(outcome, json=json)
