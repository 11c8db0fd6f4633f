"""The command ``hierarchy``: answers at any node of a hierarchy, for images that are none of the classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.parquet import check_table_file, write_table_file
from wordnet_splits.base.terminal.options import Json
from wordnet_splits.base.terminal.output import DONE, print_result, to_stderr, to_stdout
from wordnet_splits.hierarchy import RULES

from ..cli.main import app
from ..results.printing import STORE, Detectors, print_report, split_labels
from .named_answers import FALSE_ALARMS, name_unknowns


@app.command(
    "hierarchy",
    heading="Compare",
    examples=[
        "unknown-eval hierarchy results --rules threshold",
        "unknown-eval hierarchy results --rules threshold --tree --bootstrap 20 --out named.csv --json",
    ],
)
def print_hierarchy(
    results: Annotated[Path, typer.Argument(help="A folder that `run` wrote.")],
    store: Annotated[Path, typer.Option(help="Folder of activations of the evaluation.")] = STORE,
    rules: Annotated[
        str,
        typer.Option(
            help="Stopping rules, joined by commas: threshold[posterior=0.9], information[weight=0], "
            "conformal[error=0.1]."
        ),
    ] = ",".join(RULES),
    detectors: Detectors = None,
    run: Annotated[
        int | None, typer.Option(help="Number of the network, by default the first of the only model.")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="Benchmark or its folder, by default the name in the results.")
    ] = None,
    tree: Annotated[
        bool, typer.Option("--tree", help="On ImageNet's tree, in place of WordNet's graph.")
    ] = False,
    false_alarms: Annotated[
        float, typer.Option(help="Greatest acceptable share of ID images that a detector calls unknown.")
    ] = FALSE_ALARMS,
    bootstrap: Annotated[int, typer.Option(min=0, help="Replicates behind intervals, 0 for none.")] = 0,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    image: Annotated[
        list[str] | None,
        typer.Option(help="An image, SOURCE/IMAGE_ID, to answer for in words, not in tables; repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write the rows to: .csv or .parquet.")] = None,
    json: Json = False,
) -> int:
    """Name the unknown: answer at a node of the hierarchy by stopping rule and detector, and measure it."""
    if out is not None:
        check_table_file(out)
    report = name_unknowns(
        results,
        rules=split_labels(rules) or (),
        detectors=split_labels(detectors),
        run=run,
        benchmark=benchmark,
        store=store,
        tree=tree,
        false_alarms=false_alarms,
        bootstrap=bootstrap,
        seed_boot=seed_boot,
    )
    if image:
        answers = [(name, report.explain(i, detector=name)) for i in image for name in report.unknown]

        def print_answers() -> None:
            for name, answer in answers:
                to_stdout(f"{answer.image}, {name}: {answer}")

        rows = [{"detector": name, **answer.as_dict()} for name, answer in answers]
        print_result({"images": rows}, json, print_answers)
        return DONE
    if out is not None:
        write_table_file(report.to_table(), out)
        to_stderr(f"{len(report.records):,} rows in {out}")
    return print_report(report, json=json)
