"""Commands on lists of classes and their names: audit list, audit names, audit thresholds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    to_stderr,
    to_stdout,
)
from wordnet_splits.cli.main import app
from wordnet_splits.datasets.sources.roots import parse_roots
from wordnet_splits.wordnet.lexicons import ENGLISH

if TYPE_CHECKING:
    from wordnet_splits.audit.report import Audit
    from wordnet_splits.audit.thresholds import Thresholds


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
    all_: Annotated[
        bool, typer.Option("--all", help="Show every class of a relation, not the first 20.")
    ] = False,
    glosses: Annotated[
        bool, typer.Option("--glosses", help="Show the path and both meanings of each class.")
    ] = False,
    root: RootOptions = None,
    images: Annotated[
        bool,
        typer.Option("--images", help="Add leaks by digests of images, and NINCO's authors' judgements."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="File for a row per class (.csv, .parquet), or a page (.html).")
    ] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Check a list of classes by its hierarchy: equal to, below or above known ones, or namesakes."""
    from wordnet_splits.audit.overlaps import audit_classes, declarations_of_lists
    from wordnet_splits.audit.report import MAX_ROWS, check_output

    if out is not None:
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
    if out is not None:
        report.write(out)
        to_stderr(f"written to {out}")
    most = None if all_ else MAX_ROWS
    print_result(report, json, lambda: _print_audit(report, most, glosses=glosses))
    return DONE if report.ok else NEGATIVE


def _print_audit(report: Audit, most: int | None, *, glosses: bool) -> None:
    from wordnet_splits.audit.report import LIMITS, caveats

    taxonomy = report.lists.taxonomy
    to_stdout(report.heading)
    print_fields(report.summary())
    if not report.ok:
        to_stdout()
    if glosses:
        for leak in report.related[:most]:
            to_stdout(f"{leak.id} ({leak.name}) {leak.relation} {leak.other} ({leak.other_name})")
            path = " > ".join(taxonomy.name(wnid) for wnid in leak.path)
            print_fields([("path", path), ("meaning", leak.gloss), ("known", leak.other_gloss)])
    else:
        print_lines(report.table(width=terminal_width(), most=most))
    to_stdout()
    print_lines(caveats(LIMITS, taxonomy))


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
    column: Annotated[str | None, typer.Option(help="The column of the names in a table.")] = None,
    language: Annotated[
        str, typer.Option(help="Language of the names: a code such as fr, or a file of WN-LMF.")
    ] = ENGLISH,
    all_: Annotated[
        bool, typer.Option("--all", help="Show every name with a problem, not the first 20.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="File for a row per name (.csv, .parquet), or a page (.html).")
    ] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Check the class names of a vision-language model: which collide, mislead or name another class."""
    from wordnet_splits.audit.name_list import LIMITS, MAX_ROWS, audit_names
    from wordnet_splits.audit.report import check_output

    if out is not None:
        check_output(out)
    check_outputs(out, inputs=(names,) if names is not None else ())
    report = audit_names(names, benchmark, column=column, language=language, manifests=manifests)
    if out is not None:
        report.write(out)
        to_stderr(f"written to {out}")

    def print_text() -> None:
        to_stdout(report.heading)
        print_fields(report.summary())
        for lines in (report.table(width=terminal_width(), most=None if all_ else MAX_ROWS), LIMITS):
            print_lines(["", *lines] if lines else [])

    print_result(report, json, print_text)
    return DONE if report.ok else NEGATIVE


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
    if out is not None:
        counts.write(out)
        to_stderr(f"written to {out}")
    if plot is not None:
        counts.plot(plot)
        to_stderr(f"written to {plot}")
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
