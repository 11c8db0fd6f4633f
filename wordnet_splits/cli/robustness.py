"""The command that applies a benchmark's rules under alternatives: robust."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.terminal.options import Json, Manifests, add_command
from wordnet_splits.base.terminal.output import (
    DONE,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)

if TYPE_CHECKING:
    from wordnet_splits.studies.robust.roles import Robust, RobustClass

SHOWN = 20
"""Classes shown without --all."""
NOTES = (
    "Each alternative has a column: 2/3 means that it applies to three classes and gives two of them the\n"
    "same role. sense: every other noun synset of the class's name; hierarchy: ImageNet's tree for the\n"
    "graph, or the graph for the tree; path, wup and mean: that measure instead of the rule, at the rule's\n"
    "share of near classes; and each other WordNet, whose synsets are found by sense keys."
)


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    examples = ["wordnet-splits robust digits", "wordnet-splits robust rungs-cifar100 --json"]
    add_command(app, "robust", show_robust, examples, NOTES)


def show_robust(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK|all", help="A benchmark or a recipe file.")],
    wordnet: Annotated[
        list[str] | None,
        typer.Option(
            help="Another WordNet: a folder of WNDB files, or a lexicon of the package wn (oewn:2024);"
            " repeatable. Default: the lexicons installed."
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Show every class whose role changes.")] = False,
    out: Annotated[Path | None, typer.Option(help="File for a row per class, as Parquet.")] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Print which roles stay the same under another sense, measure, hierarchy and WordNet."""
    from wordnet_splits.studies.robust.roles import robust_roles

    report = robust_roles(benchmark, wordnets=wordnet, manifests=manifests)
    if out is not None:
        report.write(out)
        to_stderr(f"written to {out}")
    print_result(report, json, lambda: _print_report(report, None if all_ else SHOWN))
    return DONE


def _print_report(report: Robust, most: int | None) -> None:
    from wordnet_splits.base.names import counted

    _print_counts(report)
    changed = [c for c in report.classes if c.robust not in (None, 1.0)]
    changed.sort(key=lambda c: c.robust or 0.0)
    if changed:
        to_stdout()
        _print_classes(report, changed[:most])
        if most is not None and len(changed) > most:
            to_stdout(f"... and {len(changed) - most:,} more: --all, --out FILE.parquet")
    to_stdout()
    for reason, number in report.reasons().items():
        to_stdout(f"not read: {number:,} of {counted(len(report.classes), 'class')}: {reason}")
    for name, number in report.unmapped.items():
        to_stdout(f"{name}: {counted(number, 'class')} of the sources without a synset in it")
    print_lines(report.notes)


def _print_counts(report: Robust) -> None:
    columns = ("benchmark", "role", "classes", "read", "all agree", "share", *report.names)
    rows = []
    for row in report.counts():
        if row["read"]:
            cells = ("{}/{}".format(*row[name]) if row[name][1] else "" for name in report.names)
            counts = (row["classes"], row["read"], row["all_agree"], f"{row['share']:.2f}")
            rows.append((row["benchmark"], row["role"], *counts, *cells))
    print_table(columns, rows, right=columns[2:])


def _print_classes(report: Robust, classes: list[RobustClass]) -> None:
    columns = ("class", "role", "share", *report.names)
    rows = [
        (c.name, c.candidate, f"{c.robust:.2f}", *(c.readings[name] for name in report.names))
        for c in classes
    ]
    print_table(columns, rows, right=("share",))
