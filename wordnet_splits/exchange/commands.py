"""Commands that write and read the formats of other projects: export, import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.terminal.options import (
    AllowMissing,
    Json,
    Manifests,
    OnlyGroups,
    OnlySplits,
    RootOptions,
)
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    print_first,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)
from wordnet_splits.cli.main import app
from wordnet_splits.datasets.sources.roots import parse_roots
from wordnet_splits.exchange.formats import ARCHIVE, FORMATS

if TYPE_CHECKING:
    from wordnet_splits.exchange import Exported, Imported

SHOWN = 20
FormatName = Annotated[str, typer.Argument(metavar="FORMAT", help="A format; see below.")]


@app.command(
    "export",
    heading="Publish",
    examples=[
        "wordnet-splits export digits --format openood --out digits-openood",
        "wordnet-splits export digits --format csv --out digits-csv",
    ],
    notes=f"Formats: {', '.join(FORMATS)}.",
)
def export(
    benchmark: Annotated[str, typer.Argument(help="A frozen benchmark, or a manifest's folder.")],
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="The format; see below.")],
    out: Annotated[Path, typer.Option(help="Folder to create; nothing is overwritten.")],
    root: RootOptions = None,
    copies: Annotated[bool, typer.Option("--copies", help="Copy files instead of linking to them.")] = False,
    paths: Annotated[
        str, typer.Option(help="Paths in lists: tree, or disk for SOURCE/PATH below its root.")
    ] = "tree",
    links: Annotated[
        bool, typer.Option("--links", help="Also write images/ with a link at each listed path.")
    ] = False,
    ids_only: Annotated[bool, typer.Option("--ids-only", help="Write no images (hub).")] = False,
    group: OnlyGroups = None,
    split: OnlySplits = None,
    allow_missing: AllowMissing = False,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Write a benchmark, or a part of it, in another project's format."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.resolve import declarations_of
    from wordnet_splits.exchange import export_benchmark

    exported = export_benchmark(
        benchmark,
        format_,
        out,
        roots=parse_roots(root or [], declarations_of(benchmark, manifests=manifests)),
        copies=copies,
        paths=paths,
        links=links,
        ids_only=ids_only,
        allow_missing=allow_missing,
        groups=group or (),
        splits=split or (),
        manifests=manifests,
        progress=OnStderr(),
    )
    print_result({"exported": exported.as_dict()}, json, lambda: _print_exported(exported))
    return DONE if exported.complete else LEFT_OUT


def _print_exported(exported: Exported) -> None:
    for part in exported.awaiting:
        to_stderr(f"left out until its source is available: {part}")
    print_first([f"left out: {p.source} {p.image_id}: {p.detail}" for p in exported.problems], SHOWN)
    to_stdout(
        f"exported {exported.images:,} images of {exported.name} as {exported.format} to {exported.folder}"
    )


@app.command(
    "import",
    heading="Publish",
    examples=[
        "wordnet-splits import csv digits-csv --name again --out imported",
        "wordnet-splits import csv digits-csv --out imported-again --json",
    ],
    notes=f"Formats: {', '.join(FORMATS)}; {ARCHIVE} (the archives of Kim et al.) is only read.",
)
def import_(
    format_: FormatName,
    path: Annotated[Path, typer.Argument(help="A file or folder of that format.")],
    out: Annotated[Path, typer.Option(help="Folder to write <name>/ into.")] = Path("imported"),
    name: Annotated[
        str | None, typer.Option(help="Name of the benchmark; by default of the file or folder.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split of a list without a split in its name.")] = "test",
    role: Annotated[
        list[str] | None, typer.Option(metavar="GROUP=ROLE", help="id, near, far, external, csid.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="[GROUP=]NAME", help="Source of a group, or of all, for paths without one."),
    ] = None,
    root: RootOptions = None,
    allow_missing: AllowMissing = False,
    json: Json = False,
) -> int:
    """Read image lists in another project's format: write a recipe, OUT/NAME.toml, and its manifest."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.exchange import import_benchmark
    from wordnet_splits.exchange.importer import declarations_beside

    fallbacks = [text for text in source or [] if "=" not in text]
    if len(fallbacks) > 1:
        raise SplitsError("only one source may be for all groups", where="--source", hint="give GROUP=NAME")
    imported = import_benchmark(
        format_,
        path,
        out,
        name=name,
        split=split,
        roles=_pairs("--role", role or []),
        sources=_pairs("--source", [text for text in source or [] if "=" in text]),
        source=fallbacks[0] if fallbacks else None,
        roots=parse_roots(root or [], declarations_beside(path)),
        allow_missing=allow_missing,
        progress=OnStderr(),
    )
    print_result({"imported": imported.as_dict()}, json, lambda: _print_imported(imported))
    return LEFT_OUT if imported.unmatched or imported.problems else DONE


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, _, value = text.partition("=")
        if not key or not value:
            raise SplitsError(f"must be GROUP={option[2:].upper()}, got {text!r}", where=option)
        pairs[key] = value
    return pairs


def _print_imported(imported: Imported) -> None:
    from wordnet_splits.benchmark.group_table import print_groups

    if imported.manifest is not None:
        print_groups([(imported.name, imported.manifest.groups, None)])
    for left_out in imported.left_out:
        to_stderr(f"left out: {left_out}")
    if not imported.left_out:
        lines = [f"left out: {e.group} {e.split or 'classes'}: {e.name}" for e in imported.unmatched]
        print_first(lines, SHOWN)
    print_first([f"left out: {p.source} {p.image_id}: {p.detail}" for p in imported.problems], SHOWN)
    if imported.manifest is None:
        to_stdout("no benchmark without an ID group; a recipe next to `lists` can use")
        print_lines(f'  {{ list = "{name}" }}' for name in imported.lists)
        return
    if imported.like is not None:
        columns = ("group", "of", "both", f"only {imported.like}", f"only {imported.name}")
        rows = [(row.group, row.of, row.both, row.only_a, row.only_b) for row in imported.in_common]
        print_table(columns, rows, right=columns[2:])
    recipe = f", its recipe {imported.recipe}" if imported.recipe else ""
    to_stdout(f"imported {imported.name} to {imported.folder}{recipe}")
