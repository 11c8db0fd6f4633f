"""The command that reads a benchmark's rules in other ways: robust."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.terminal.options import Json, Manifests, add_command
from wordnet_splits.terminal.output import DONE, print_json, print_table, to_stderr, to_stdout

if TYPE_CHECKING:
    from wordnet_splits.robust.robust import Robust, RobustClass

SHOWN = 20
"""Classes shown without --all."""
NOTES = (
    "A column a reading; 2/3 says that it applies to three classes and gives two of them the same role:\n"
    "sense, every other noun synset of the class's name; hierarchy, ImageNet's tree for the graph or the\n"
    "graph for the tree; path, wup and mean, that measure in place of the rule, at the share of near\n"
    "classes that the rule gives; and each other WordNet, its synsets found by sense keys."
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
    all_: Annotated[bool, typer.Option("--all", help="Show every class that a reading turns.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write a row a class, as Parquet.")] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Say which roles survive another sense, measure, hierarchy and WordNet."""
    from wordnet_splits.robust.robust import robust
    from wordnet_splits.rules.evidence import counted

    found = robust(benchmark, wordnets=wordnet, manifests=manifests)
    if out is not None:
        found.write(out)
        to_stderr(f"written to {out}")
    if json:
        print_json(found.as_dict())
        return DONE
    _show_counts(found)
    turned = sorted((c for c in found.classes if c.robust not in (None, 1.0)), key=lambda c: c.robust or 0.0)
    if turned:
        to_stdout()
        _show_classes(found, turned[: None if all_ else SHOWN])
        if len(turned) > SHOWN and not all_:
            to_stdout(f"... and {len(turned) - SHOWN:,} more: --all, --out FILE.parquet")
    to_stdout()
    for why, number in found.reasons().items():
        to_stdout(f"not read: {number:,} of {counted(len(found.classes), 'class')}: {why}")
    for name, number in found.unmapped.items():
        to_stdout(f"{name}: {counted(number, 'class')} of the sources without a synset in it")
    for note in found.notes:
        to_stdout(note)
    return DONE


def _show_counts(found: Robust) -> None:
    columns = ("benchmark", "role", "classes", "read", "all agree", "share", *found.names)
    rows = []
    for row in found.counts():
        if row["read"]:
            cells = ("{}/{}".format(*row[name]) if row[name][1] else "" for name in found.names)
            counts = (row["classes"], row["read"], row["all_agree"], f"{row['share']:.2f}")
            rows.append((row["benchmark"], row["role"], *counts, *cells))
    print_table(columns, rows, right=columns[2:])


def _show_classes(found: Robust, classes: list[RobustClass]) -> None:
    columns = ("class", "role", "share", *found.names)
    rows = [
        (one.name, one.candidate, f"{one.robust:.2f}", *(one.readings[name] for name in found.names))
        for one in classes
    ]
    print_table(columns, rows, right=("share",))
