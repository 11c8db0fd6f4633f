"""Commands on lists of classes and their names: audit list, audit names, audit thresholds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from wordnet_splits.base.files import check_outputs
from wordnet_splits.base.tabular import terminal_width
from wordnet_splits.base.terminal.options import Declared, Json, Manifests, RootOptions
from wordnet_splits.base.terminal.output import (
    DONE,
    NEGATIVE,
    print_fields,
    print_lines,
    print_result,
    print_table,
    to_stdout,
    write_output,
)
from wordnet_splits.cli.main import app
from wordnet_splits.datasets.sources.roots import parse_roots
from wordnet_splits.wordnet.lexicons import ENGLISH

if TYPE_CHECKING:
    from wordnet_splits.audit.report import Audit
    from wordnet_splits.audit.report_base import AuditReport
    from wordnet_splits.audit.thresholds import Thresholds
AnyReport = TypeVar("AnyReport", bound="AuditReport")
Against = Annotated[str, typer.Option(help="The known classes, in any of the forms of LIST.")]
NamesOf = Annotated[
    str | None,
    typer.Option(
        help="The source of the names or indices in a file; by default nouns of WordNet,"
        " or nodes of the lists' own hierarchy."
    ),
]
Column = Annotated[
    str | None,
    typer.Option(help="The column of a table (name or number), or the key of a JSON object."),
]


ColumnOfWords = Annotated[str | None, typer.Option(help="The column of the names or words in a table.")]
AllRows = Annotated[bool, typer.Option("--all", help="Show all findings, not only the first of each kind.")]
AuditOut = Annotated[
    Path | None, typer.Option(help="File for a row per entry (.csv, .parquet), or a page (.html).")
]


@app.command(
    "audit list",
    examples=[
        "wordnet-splits audit list ssb-hard",
        "wordnet-splits audit list imagenet-r --against tiny-imagenet --json",
    ],
)
def audit_classes(
    classes: Annotated[
        str,
        typer.Argument(
            metavar="LIST",
            help="A file of wnids, names or indices, a catalog, a source, a shipped list, a set, "
            "or BENCHMARK:GROUP.",
        ),
    ],
    against: Against = "imagenet1k",
    of: NamesOf = None,
    column: Column = None,
    all_: AllRows = False,
    glosses: Annotated[
        bool, typer.Option("--glosses", help="Show the path and both meanings of each class.")
    ] = False,
    root: RootOptions = None,
    images: Annotated[
        bool,
        typer.Option("--images", help="Add leaks by digests of images, and NINCO's authors' judgements."),
    ] = False,
    out: AuditOut = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Check a list of classes by its hierarchy: equal to, below or above known ones, or namesakes."""
    from wordnet_splits.audit.overlaps import audit_classes, declarations_of_lists
    from wordnet_splits.audit.report_base import check_output

    check_output(out)
    check_outputs(out, inputs=(classes, against))
    declarations = declarations_of_lists(classes, against, manifests=manifests)
    report = audit_classes(
        classes,
        against,
        of=of,
        column=column,
        images=images,
        roots=parse_roots(root or [], declarations),
        manifests=manifests,
    )
    return report_audit(report, out, json, all_, _print_glosses if glosses else _print_tables)


def _print_tables(report: AuditReport, most: int | None) -> None:
    for lines in report.tables(terminal_width(), most):
        print_lines(["", *lines] if lines else [])


def report_audit(
    report: AnyReport,
    out: Path | None,
    json: bool,
    all_: bool,
    print_findings: Callable[[AnyReport, int | None], None] = _print_tables,
) -> int:
    """Write and print the report of an audit, and return the exit code."""

    def print_text() -> None:
        to_stdout(report.heading)
        print_fields(report.summary())
        print_findings(report, None if all_ else report.max_rows)
        print_lines(["", *report.caveats])

    write_output(out, report.write)
    print_result(report, json, print_text)
    return DONE if report.ok else NEGATIVE


def _print_glosses(report: Audit, most: int | None) -> None:
    names = report.lists.taxonomy.name
    for n, leak in enumerate(report.related[:most]):
        print_lines([""] * (n == 0))
        to_stdout(f"{leak.id} ({leak.name}) {leak.relation} {leak.other} ({leak.other_name})")
        path = " > ".join(map(names, leak.path))
        print_fields([("path", path), ("meaning", leak.gloss), ("known", leak.other_gloss)])


@app.command(
    "audit names",
    examples=[
        "wordnet-splits audit names clip-names.txt --benchmark openood-imagenet1k --all",
        "wordnet-splits audit names --benchmark openood-imagenet1k --out names.csv",
    ],
)
def audit_names(
    names: Annotated[
        Path | None,
        typer.Argument(
            metavar="LIST",
            help="A file with a name a line in label order, or a table with columns class_id and name; by "
            "default the names that zero-shot models get.",
        ),
    ] = None,
    *,
    benchmark: Annotated[str, typer.Option(help="The benchmark whose ID classes have these names.")],
    column: ColumnOfWords = None,
    language: Annotated[
        str, typer.Option(help="Language of the names: a code such as fr, or a file of WN-LMF.")
    ] = ENGLISH,
    all_: AllRows = False,
    out: AuditOut = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Check the class names of a vision-language model: which collide, mislead or name another class."""
    from wordnet_splits.audit.name_list import audit_names
    from wordnet_splits.audit.report_base import check_output

    check_output(out)
    check_outputs(out, inputs=(names,) if names is not None else ())
    report = audit_names(names, benchmark, column=column, language=language, manifests=manifests)
    return report_audit(report, out, json, all_)


@app.command(
    "audit thresholds",
    examples=[
        "wordnet-splits audit thresholds caltech256 --against cifar100",
        "wordnet-splits audit thresholds food101 --measure distance --json",
    ],
)
def show_thresholds(
    classes: Annotated[
        str, typer.Argument(metavar="LIST", help="A source, a list or a file, as for `audit list`.")
    ] = "imagenet21k",
    against: Against = "imagenet1k",
    measure: Annotated[
        str, typer.Option(help="mean, path, wup_wn, lch, lin, ... or distance (in edges).")
    ] = "mean",
    of: NamesOf = None,
    column: Column = None,
    root: RootOptions = None,
    declared: Declared = None,
    out: Annotated[Path | None, typer.Option(help="File for a row per class, as Parquet.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="File for a plot of the counts: .svg, .png or .pdf.")
    ] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Count the classes that are near, far, below or above known ones, threshold by threshold."""
    from wordnet_splits.audit.thresholds import thresholds
    from wordnet_splits.benchmark.recipe import declared_by
    from wordnet_splits.datasets.catalog.declarations import declare

    check_outputs(out, plot, inputs=(classes, against))
    declare(*declared_by(declared).values())
    parse_roots(root or [])
    counts = thresholds(classes, against, measure=measure, of=of, column=column, manifests=manifests)
    write_output(out, counts.write)
    write_output(plot, counts.plot)
    print_result(counts, json, lambda: _print_thresholds(counts))
    return DONE


def _print_thresholds(counts: Thresholds) -> None:
    against = f"{counts.known:,} of {counts.against}"
    to_stdout(f"{len(counts.table):,} other classes of {counts.listed} against {against}, {counts.measure}")
    columns = ("threshold", "near", "far", "below", "above")
    rows = [
        (f"{row['threshold']:g}", *(f"{row[name]:,}" for name in columns[1:]))
        for row in counts.counts(counts.summary())
    ]
    print_table(columns, rows, right=columns)
    if (balanced := counts.balanced) is not None:
        to_stdout(balanced.sentence)
