"""Commands that explain or question a benchmark: explain, cite, power, audit leaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.terminal.options import Cut, Json, Manifests, RootOptions
from wordnet_splits.base.terminal.output import (
    DONE,
    NEGATIVE,
    print_fields,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)
from wordnet_splits.cli.main import app
from wordnet_splits.datasets.sources.roots import parse_roots

if TYPE_CHECKING:
    from wordnet_splits.benchmark.checks.leaks import LeakReport
    from wordnet_splits.benchmark.detectable import BenchmarkPower

BenchmarkOrRecipe = Annotated[
    str, typer.Argument(metavar="BENCHMARK", help="A benchmark, a manifest's folder, or a recipe file.")
]


MEANINGS = {"meaning": "gloss", "nearest's": "nearest_gloss"}
"""Field -> key of the gloss that it shows."""


@app.command(
    "explain",
    heading="Use",
    examples=[
        "wordnet-splits explain unknown-imagenet axolotl",
        "wordnet-splits explain digits --all --format latex",
    ],
)
def explain_class(
    benchmark: BenchmarkOrRecipe,
    class_name: Annotated[
        str | None,
        typer.Argument(metavar="CLASS", help="A class_id, name or synset; SOURCE:CLASS for one source."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Print every class, in the format of --format.")
    ] = False,
    format_: Annotated[str, typer.Option("--format", help="With --all: csv, md or latex.")] = "md",
    root: RootOptions = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print the hash that a draw sorts by.")
    ] = False,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Explain why a class is in-distribution, near, far, external or excluded, and how near it is."""
    from wordnet_splits.benchmark.explain import explain_benchmark, explain_class
    from wordnet_splits.benchmark.resolve import declarations_of

    if all_ == (class_name is not None):
        hint = f"as in: wordnet-splits explain {benchmark} CLASS, with a class_id, name or synset"
        raise SplitsError("give either a class or --all", where="explain", hint=hint)
    parse_roots(root or [], declarations_of(benchmark, manifests=manifests))  # a root may declare its dataset
    if class_name is None:
        table = explain_benchmark(benchmark, manifests=manifests)
        result = {"benchmark": table.benchmark, "classes": table.classes}
        print_result(result, json, lambda: print_lines(table.to_text(format_).splitlines()))
    else:
        rows = explain_class(benchmark, class_name, manifests=manifests).classes
        print_result({**rows[0], "also": rows[1:]}, json, lambda: _print_explanations(rows, verbose))
    return DONE


def _print_explanations(rows: Sequence[Mapping[str, Any]], verbose: bool) -> None:
    from wordnet_splits.benchmark.explain import draw_tree

    for row in rows:
        to_stdout(f"{row['source']}:{row['class_id']}  {row['name']}")
        print_fields(_explanation_fields(row, verbose))
        print_lines(f"    {line}" for line in draw_tree(row))


def _explanation_fields(row: Mapping[str, Any], verbose: bool) -> list[tuple[str, str]]:
    from wordnet_splits.base.names import counted

    fields = [
        ("role", row["role"] + (f" (group {row['group']})" if row["group"] else "")),
        ("evidence", row["evidence"]),
        ("rule", row["rule"]),
        ("margin", row["margin"]),
        ("change", row["change"]),
        ("nodes" if row["hierarchy"] else "synsets", ", ".join(row["wnids"]) or "none"),
        *([("hierarchy", row["hierarchy"])] if row["hierarchy"] else []),
    ]
    if row["nearest_id"] is not None:
        name = "" if row["nearest_name"] == row["nearest_id"] else f" ({row['nearest_name']})"
        measures = (
            f"mean {row['mean']:.4f}, path {row['path']:.4f}, wup {row['wup']:.4f}, lch {row['lch']:.4f}"
        )
        fields += [
            ("nearest", f"{row['nearest_id']}{name}: {measures}, {counted(row['distance'], 'edge')}"),
            ("constants", row["constants"]),
            *((name, row[key]) for name, key in MEANINGS.items() if row[key]),
        ]
    if verbose and row["draw_key"] is not None:
        fields.append(("draw key", row["draw_key"]))
    elsewhere: dict[str, list[str]] = {}
    for entry in row["elsewhere"]:
        group = f" (group {entry['group']})" if entry["group"] else ""
        elsewhere.setdefault(f"{entry['role']}{group}", []).append(entry["benchmark"])
    fields += [("elsewhere", f"{role}: {', '.join(names)}") for role, names in elsewhere.items()]
    return fields


@app.command(
    "cite",
    heading="Use",
    examples=[
        "wordnet-splits cite unknown-cifar",
        "wordnet-splits cite digits --json",
    ],
)
def cite_benchmark(
    benchmark: BenchmarkOrRecipe,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Print BibTeX of a benchmark's paper, of WordNet if it decides, of every source and of this program."""
    from wordnet_splits.hub.attribution import cite_benchmark

    citations = cite_benchmark(benchmark, manifests=manifests)
    print_result(citations, json, lambda: print_lines(citations.bibtex.splitlines()))
    if citations.unlisted:
        to_stderr(f"no BibTeX is known of the recipe's paper, {citations.unlisted!r}: cite it yourself")
    return DONE


@app.command(
    "power",
    heading="Question",
    examples=[
        "wordnet-splits power unknown-imagenet",
        "wordnet-splits power digits --auroc .9 --difference .05 --json",
    ],
    notes=(
        "A smaller difference may come from the draw: over images, that of images of the same classes; over\n"
        "classes, that of the classes; over subtrees, that of parts of the hierarchy with all their classes."
    ),
)
def show_power(
    benchmark: BenchmarkOrRecipe,
    auroc: Annotated[float, typer.Option(help="AUROC of the detectors.")] = 0.8,
    difference: Annotated[
        float, typer.Option(help="Difference in AUROC that classes are needed for.")
    ] = 0.02,
    cut: Cut = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Print the smallest differences between detectors that a benchmark can show, and the classes needed."""
    from wordnet_splits.benchmark.detectable import power

    result = power(benchmark, auroc=auroc, difference=difference, cut=cut, manifests=manifests)
    print_result(result, json, lambda: _print_power(result))
    return DONE


def _print_power(power: BenchmarkPower) -> None:
    from wordnet_splits.benchmark.detectable import figure

    needed = f"classes for {power.difference:g}"
    columns = ("set", "role", "over", "number", "auroc", "fpr95", needed)
    rows = []
    for row in power.sets:
        for over, smallest in row.auroc.items():
            number: int = getattr(row, over)
            name = (row.group, row.role) if over == "images" else ("", "")
            enough = "" if over != "classes" else "-" if row.needed is None else f"{row.needed:,}"
            rows.append((*name, over, number, figure(smallest), figure(row.fpr95[over]), enough))
    print_table(columns, rows, right=columns[3:])
    to_stdout()
    to_stdout(f"Smallest differences shown with 80% power (two-sided test at 5%), at AUROC {power.auroc:g}.")
    print_lines([*(line for line in [power.sentence()] if line), *power.notes])


app.group(
    "audit", "Question lists of classes and benchmarks: relations, leaks, robustness.", heading="Question"
)


@app.command(
    "audit leaks",
    examples=[
        "wordnet-splits audit leaks unknown-cifar",
        "wordnet-splits audit leaks digits --json",
    ],
)
def show_leaks(
    name: Annotated[str, typer.Argument(help="A frozen benchmark, or the folder of a build.")],
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """List every leak between a benchmark's groups: classes, ancestry and identical images.

    The exit code is 1 where the manifest does not record a leak, or records one that is not there.
    """
    from wordnet_splits.benchmark.checks.leaks import report_leaks
    from wordnet_splits.benchmark.resolve import load_manifest

    report = report_leaks(load_manifest(name, manifests))
    print_result(report, json, lambda: _print_leaks(report))
    return DONE if report.ok else NEGATIVE


def _print_leaks(report: LeakReport) -> None:
    from wordnet_splits.benchmark.checks.leaks import AS_RECORDED

    for leak in report.leaks:
        status = leak.severity if leak.status == AS_RECORDED else leak.status.upper()
        status += f": {leak.reason}" if leak.reason else ""
        between = f"within {leak.a}" if leak.a == leak.b else f"between {leak.a} and {leak.b}"
        to_stdout(f"{leak.kind} {between}: {len(leak.pairs):,}, {status}")
        pairs = (f"  {a}" if a == b else f"  {a}  {b}" for a, b in leak.pairs)
        distances = (f"  {distance:>3}" for distance in leak.distances) if leak.distances else repeat("")
        print_lines(map(str.__add__, distances, pairs))
    for row in report.unchecked:
        to_stdout(f"not compared by digest: {row['group']} {row['split']}: {row['why']}")
    left_out = f"{report.groups_not_compared:,} groups not compared"
    verdict = "all recorded" if report.ok else "NOT as the manifest records them"
    to_stdout(f"{report.name}: {report.exact:,} exact among what was compared, {left_out}; {verdict}")
