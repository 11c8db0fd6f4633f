"""Commands on lists of classes: audit, thresholds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.tabular import terminal_width
from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.taxonomy import load
from wordnet_splits.terminal.options import Json, Manifests, RootOptions, add_command
from wordnet_splits.terminal.output import (
    DONE,
    NEGATIVE,
    print_fields,
    print_json,
    print_table,
    to_stderr,
    to_stdout,
)


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    examples = [
        "wordnet-splits audit ssb-hard",
        "wordnet-splits audit imagenet-r --against tiny-imagenet --json",
    ]
    add_command(app, "audit", audit_classes, examples)
    examples = [
        "wordnet-splits thresholds caltech256 --against cifar100",
        "wordnet-splits thresholds food101 --measure distance --json",
    ]
    add_command(app, "thresholds", show_thresholds, examples)


Against = Annotated[str, typer.Option(help="The known classes, given in the same ways.")]
NamesOf = Annotated[
    str | None,
    typer.Option(help="The source whose names or indices the files hold; else WordNet's nouns."),
]
Column = Annotated[
    str | None,
    typer.Option(help="The column of a table, by name or number, or the key of a JSON object."),
]


def audit_classes(
    classes: Annotated[
        str,
        typer.Argument(
            metavar="LIST",
            help="A file of wnids, names or indices; a source; a shipped list; a set; BENCHMARK:GROUP.",
        ),
    ],
    against: Against = "imagenet1k",
    of: NamesOf = None,
    column: Column = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Show every class of a relation, not the first 20.")
    ] = False,
    glosses: Annotated[bool, typer.Option("--glosses", help="Show path and both meanings of each.")] = False,
    root: RootOptions = None,
    images: Annotated[
        bool, typer.Option("--images", help="Add what digests and NINCO's authors say of the pictures.")
    ] = False,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Check a list of classes by WordNet: which equal, lie below or above a known class, or bear its name."""
    from wordnet_splits.audit.audit import LIMITS, SHOWN, audit

    parse_roots(root or [])  # a dataset of one's own may be declared there
    found = audit(classes, against, of=of, column=column, images=images, manifests=manifests)
    code = DONE if found.ok else NEGATIVE
    if json:
        print_json(found.as_dict())
        return code
    most = None if all_ else SHOWN
    to_stdout(found.heading)
    print_fields(found.summary())
    if not found.ok:
        to_stdout()
    if glosses:
        taxonomy = load()
        for one in found.related[:most]:
            to_stdout(f"{one.id} ({one.name}) {one.relation} {one.other} ({one.other_name})")
            path = " > ".join(taxonomy.name(wnid) for wnid in one.path)
            print_fields([("path", path), ("meaning", one.gloss), ("known", one.other_gloss)])
    else:
        for line in found.table(width=terminal_width() or 80, most=most):
            to_stdout(line)
    to_stdout()
    for line in LIMITS:
        to_stdout(line)
    return code


def show_thresholds(
    classes: Annotated[
        str, typer.Argument(metavar="LIST", help="A source, a list or a file, as of audit.")
    ] = "imagenet21k",
    against: Against = "imagenet1k",
    measure: Annotated[
        str, typer.Option(help="mean, path, wup_wn, lch, ... or distance, of which less is nearer.")
    ] = "mean",
    of: NamesOf = None,
    column: Column = None,
    root: RootOptions = None,
    out: Annotated[Path | None, typer.Option(help="Write a row a class, as Parquet.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the counts, as .svg, .png or .pdf.")] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Say how many other classes are near, far, below or above known ones, threshold by threshold."""
    from wordnet_splits.audit.thresholds import thresholds

    parse_roots(root or [])
    found = thresholds(classes, against, measure=measure, of=of, column=column, manifests=manifests)
    if out is not None:
        found.write(out)
        to_stderr(f"written to {out}")
    if plot is not None:
        found.plot(plot)
        to_stderr(f"written to {plot}")
    if json:
        print_json(found.as_dict())
        return DONE
    to_stdout(
        f"{len(found.table):,} other classes of {found.listed} against {found.known:,} of {found.against},"
        f" {found.measure}"
    )
    columns = ("threshold", "near", "far", "below", "above")
    rows = [
        (f"{row['threshold']:g}", *(f"{row[name]:,}" for name in columns[1:]))
        for row in found.counts(found.summary())
    ]
    print_table(columns, rows, right=columns)
    return DONE
