"""Commands that study benchmarks: audit sets, audit fidelity, audit robust, distance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.terminal.options import Json, Manifests
from wordnet_splits.base.terminal.output import (
    DONE,
    NEGATIVE,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
    write_output,
)
from wordnet_splits.cli.explaining import BenchmarkOrRecipe
from wordnet_splits.cli.main import app

if TYPE_CHECKING:
    from wordnet_splits.studies.class_sets import Difference
    from wordnet_splits.studies.robust import Robust, RobustClass

COLUMNS = ("set", "checked", "paper", "groups", "classes", "only published", "only ours", "elsewhere")


SHOWN = 20
"""Classes shown without --all."""
NOTES = (
    "Each alternative has a column: 2/3 means that it applies to three classes, and two of them keep\n"
    "their role. sense: every other noun synset of the class's name; hierarchy: ImageNet's tree for the\n"
    "graph, or the graph for the tree; path, wup and mean: that measure instead of the rule, at the rule's\n"
    "share of near classes; and each other WordNet, whose synsets are found by sense keys."
)


@app.command(
    "audit sets",
    examples=[
        "wordnet-splits audit sets",
        "wordnet-splits audit sets imagenette --json",
    ],
)
def show_sets(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A set, to print its classes.")] = None,
    published: Annotated[
        Path | None,
        typer.Option(help="The published list, a TSV with a header, to print the differences."),
    ] = None,
    json: Json = False,
) -> int:
    """Print the published class lists that recipes rebuild, and their differences."""
    if name is None:
        if published is not None:
            raise typer.BadParameter("name the set: wordnet-splits audit sets NAME --published FILE")
        return _show_all(json)
    if published is not None:
        return _show_differences(name, published, json)
    from wordnet_splits.studies.class_sets import class_set

    class_list = class_set(name)
    columns = ("group", "place", "superclass", "class_id", "name")
    rows = [[vars(c)[column] for column in columns] for c in class_list.classes]
    result = {"name": class_list.recipe.name, "classes": list(class_list.rows())}
    print_result(result, json, lambda: print_table(columns, rows, right=("place",)))
    return DONE


def _show_all(json: bool) -> int:
    from wordnet_splits.studies.class_sets import class_sets

    sets = class_sets()
    ok = all(row.as_declared for row in sets)

    def print_sets() -> None:
        rows = [
            (r.name, r.checked, r.paper, r.groups, r.classes, r.only_published, r.only_ours, r.elsewhere)
            for r in sets
        ]
        print_table(COLUMNS, rows, right=COLUMNS[3:])
        to_stdout()
        for note in dict.fromkeys(row.note for row in sets if row.note):
            to_stdout(f"{', '.join(row.name for row in sets if row.note == note)}: {note}")

    print_result({"ok": ok, "sets": list(sets.rows())}, json, print_sets)
    return DONE if ok else NEGATIVE


def _show_differences(name: str, published: Path, json: bool) -> int:
    from wordnet_splits.studies.class_sets import class_set, list_sha256, read_published

    rebuilt = class_set(name)
    lines = read_published(published, rebuilt)
    rows = rebuilt.differences(lines)
    is_published = list_sha256(lines, ordered=rebuilt.published.ordered) == rebuilt.published.sha256
    same = not rows and (not rebuilt.published.ordered or lines == rebuilt.lines())
    print_result(
        {"same": same, "known": is_published, "differences": list(rows.rows())},
        json,
        lambda: _print_differences(rows, len(lines), same),
    )
    if not is_published and not json:
        to_stderr(f"{published} differs from the list that {name} rebuilds ({rebuilt.published.origin})")
    return DONE if same else NEGATIVE


def _print_differences(rows: Sequence[Difference], count: int, same: bool) -> None:
    if same:
        to_stdout(f"{count:,} classes, 0 differences")
    elif not rows:
        to_stdout(f"the same {count:,} classes in another order")
    else:
        columns = ("class_id", "name", "published", "ours", "evidence")
        print_table(columns, [[vars(row)[column] for column in columns] for row in rows])
        kinds = Counter(
            "only published" if not r.ours else "elsewhere" if r.published else "only ours" for r in rows
        )
        counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
        to_stdout()
        to_stdout(f"{len(rows):,} differences: {counts}")


@app.command(
    "audit fidelity",
    examples=[
        "wordnet-splits audit fidelity",
        "wordnet-splits audit fidelity --json",
    ],
)
def show_fidelity(
    summary: Annotated[bool, typer.Option("--summary", help="Print a row for each paper only.")] = False,
    json: Json = False,
) -> int:
    """Compare published figures with ours, and show each switch of the keyword rule."""
    from wordnet_splits.studies.fidelity import fidelity_rows, keyword_switches

    rows = fidelity_rows()
    switches = () if summary and not json else keyword_switches()

    def print_summary() -> None:
        papers = dict.fromkeys(row.paper for row in rows)
        published = {p: [r for r in rows if r.paper == p and r.published is not None] for p in papers}
        print_table(
            ("paper", "published figures", "equal", "different"),
            [
                (paper, len(some), equal := sum(r.ours == r.published for r in some), len(some) - equal)
                for paper, some in published.items()
            ],
            right=("published figures", "equal", "different"),
        )
        to_stdout()
        to_stdout("all figures and reasons: wordnet-splits audit fidelity")

    def print_figures() -> None:
        print_table(
            ("paper", "what", "published", "ours"),
            [(r.paper, r.what, r.published, r.ours) for r in rows],
            right=("published", "ours"),
        )
        to_stdout()
        to_stdout("Differences and notes:")
        for why in dict.fromkeys(r.why for r in rows if r.why):
            to_stdout(f"  {'; '.join(r.what for r in rows if r.why == why)}: {why}")
        to_stdout()
        to_stdout("Far-OOD classes (and images) kept with each switch of the keyword rule:")
        sources = list(switches[0].kept)
        print_table(("switch", *sources), [(s.switch, *map(s.cell, sources)) for s in switches])

    result = {"rows": [asdict(r) for r in rows], "switches": [asdict(s) for s in switches]}
    print_result(result, json, print_summary if summary else print_figures)
    return DONE


@app.command(
    "audit robust",
    examples=[
        "wordnet-splits audit robust digits",
        "wordnet-splits audit robust rungs-cifar100 --json",
    ],
    notes=NOTES,
)
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
    from wordnet_splits.studies.robust import robust_roles

    report = robust_roles(benchmark, wordnets=wordnet, manifests=manifests)
    write_output(out, report.write)
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
        to_stdout(f"not judged: {number:,} of {counted(len(report.classes), 'class')}: {reason}")
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
    print_table(columns, rows, right=columns[1:])


def _print_classes(report: Robust, classes: list[RobustClass]) -> None:
    columns = ("class", "role", "share", *report.names)
    rows = [
        (c.name, c.candidate, f"{c.robust:.2f}", *(c.readings[name] for name in report.names))
        for c in classes
    ]
    print_table(columns, rows, right=("share",))


@app.command(
    "distance",
    heading="Use",
    examples=[
        "wordnet-splits distance unknown-imagenet",
        "wordnet-splits distance digits --json",
    ],
)
def show_distance(
    benchmark: BenchmarkOrRecipe,
    measure: Annotated[
        str, typer.Option(help="distance (edges), or path, wup, lch or mean (larger is nearer).")
    ] = "distance",
    plot: Annotated[
        Path | None, typer.Option(help="File for a box plot of the sets: .svg, .png or .pdf.")
    ] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Print how far each set of a benchmark lies from its ID classes, and whether near is nearer than far."""
    from wordnet_splits.studies.distances import distance

    distances = distance(benchmark, measure=measure, manifests=manifests)
    write_output(plot, distances.plot)

    def print_distances() -> None:
        rows = distances.rows()
        columns = tuple(rows[0])
        print_table(columns, [tuple(row.values()) for row in rows], right=columns[2:])
        to_stdout()
        print_lines(distances.conclusions())

    print_result(distances, json, print_distances)
    return DONE
