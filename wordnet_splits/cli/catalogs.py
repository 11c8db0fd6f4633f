"""Commands on catalogs: check, show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.terminal.options import (
    Json,
    WordNet,
)
from wordnet_splits.base.terminal.output import (
    DONE,
    NEGATIVE,
    print_lines,
    print_result,
    print_table,
    to_stdout,
)
from wordnet_splits.cli.main import app
from wordnet_splits.wordnet.taxonomy import load

if TYPE_CHECKING:
    from wordnet_splits.datasets.catalog.check import CatalogReport


app.group("catalog", "The classes of every source and their synsets.", heading="Data")


@app.command(
    "catalog check",
    examples=[
        "wordnet-splits catalog check",
        "wordnet-splits catalog check cifar100",
    ],
)
def check_catalog(
    source: Annotated[
        str | None, typer.Argument(help="One source, or a catalog of your own (FILE.tsv); all by default.")
    ] = None,
    wordnet: WordNet = None,
    json: Json = False,
) -> int:
    """Check that every synset exists, and list the names whose first sense is not the class."""
    from wordnet_splits.datasets.catalog.check import check_catalogs

    taxonomy = load(wordnet)
    reports = check_catalogs([source] if source else None, taxonomy)
    ok = all(r.ok for r in reports)
    result = {"ok": ok, "sources": [asdict(r) for r in reports]}
    print_result(result, json, lambda: _print_reports(reports, ok))
    return DONE if ok else NEGATIVE


def _print_reports(reports: Sequence[CatalogReport], ok: bool) -> None:
    for report in reports:
        kinds = (f"{n} {kind or 'without synset'}" for kind, n in sorted(report.mapped.items()) if n)
        to_stdout(f"{report.source}: {report.classes} classes; {', '.join(kinds)}")
        for wrong in report.naive_wrong:
            sense = f"{wrong.naive} ({wrong.naive_gloss})"
            to_stdout(f"  {wrong.name}: first sense would be {sense}, ours is {wrong.ours}")
        print_lines(f"  {class_id}: {wnid} does not exist" for class_id, wnid in report.absent)
    to_stdout("every synset exists" if ok else "some synsets do not exist")


@app.command(
    "catalog show",
    examples=[
        "wordnet-splits catalog show cifar100",
        "wordnet-splits catalog show digits --json",
    ],
)
def show_catalog(source: Annotated[str, typer.Argument(help="A source.")], json: Json = False) -> int:
    """Print a source's classes with their synsets and the reason for each."""
    from wordnet_splits.datasets.catalog import load_catalog

    catalog = load_catalog(source)
    columns = ("class_id", "name", "superclass", "wnids", "mapped", "why")
    rows = [(c.class_id, c.name, c.superclass, " ".join(c.wnids), c.mapped, c.why) for c in catalog]
    result = {"source": source, "classes": [asdict(c) for c in catalog]}
    print_result(result, json, lambda: print_table(columns, rows))
    return DONE
