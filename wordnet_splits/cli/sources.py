"""Commands on datasets and their classes: sources list, show, fetch, check; catalog check, show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordnet_splits.base.terminal.options import Json, Manifests, RootOptions, WordNet
from wordnet_splits.base.terminal.output import (
    DONE,
    NEGATIVE,
    print_lines,
    print_result,
    print_table,
    to_stdout,
)
from wordnet_splits.cli.main import app
from wordnet_splits.datasets.sources.roots import parse_roots
from wordnet_splits.wordnet.taxonomy import load

if TYPE_CHECKING:
    from wordnet_splits.benchmark.checks.doctor import Awaited, BenchmarkState, Diagnosis, SourceState
    from wordnet_splits.datasets.catalog.check import CatalogReport

SHOWN_NAMES = 3


app.group(
    "sources",
    "The datasets: where to get them, what your copies hold, their frozen image ids.",
    heading="Data",
)


@app.command(
    "sources list",
    examples=[
        "wordnet-splits sources list",
        "wordnet-splits sources list --json",
    ],
)
def list_sources(json: Json = False) -> int:
    """List the datasets with their size and licence."""
    from wordnet_splits.datasets.sources import source_names

    rows = [_source_row(name) for name in source_names()]
    columns = ("source", "classes", "images", "size", "licence")
    cells = [(r["name"], r["classes"], r["images"], r["size"], r["licence"]) for r in rows]
    print_result({"sources": rows}, json, lambda: print_table(columns, cells, right=columns[1:3]))
    return DONE


@app.command(
    "sources show",
    examples=[
        "wordnet-splits sources show imagenet1k",
        "wordnet-splits sources show svhn --json",
    ],
)
def show_source(
    name: Annotated[str, typer.Argument(help="A source, as `sources list` names it.")], json: Json = False
) -> int:
    """Print a dataset's address, licence, size, checksums and expected tree, and how to get it."""
    from wordnet_splits.datasets.sources import source_info

    row = _source_row(source_info(name).name)
    print_result({"sources": [row]}, json, lambda: _print_source(row))
    return DONE


def _source_row(name: str) -> dict[str, Any]:
    from wordnet_splits.datasets.catalog import load_catalog
    from wordnet_splits.datasets.sources import source_class, source_info

    splits = source_class(name).expected()
    counts = list(splits.values())
    images = None if None in counts else sum(filter(None, counts))
    classes = len(load_catalog(name))
    info = {key: value for key, value in asdict(source_info(name)).items() if key != "module"}
    return {**info, "classes": classes, "splits": splits, "images": images}


def _print_source(row: dict[str, Any]) -> None:
    from wordnet_splits.datasets.sources import root_variable, source_class

    to_stdout(f"{row['name']}: {row['title']}")
    to_stdout(f"  address   {row['url']}")
    to_stdout(f"  licence   {row['licence']}")
    to_stdout(f"  size      {row['size']}")
    counts = (f"{s} {'not published' if n is None else f'{n:,}'}" for s, n in row["splits"].items())
    to_stdout(f"  images    {', '.join(counts)}; {row['classes']:,} classes")
    to_stdout(f"  get it    {row['how']}")
    for file in row["files"]:
        sums = [f"{kind} {file[kind]}" for kind in ("md5", "sha256") if file[kind]]
        to_stdout(f"  file      {file['file']}  {', '.join(sums) or 'no checksum known'}")
    print_lines(f"  tree      {line}" for line in row["tree"].splitlines())
    if source_class(row["name"]).rooted:
        to_stdout(f"  root      --root {row['name']}=DIR, {root_variable(row['name'])}=DIR, or roots.toml")


@app.command(
    "sources fetch",
    examples=[
        "wordnet-splits sources fetch cifar100 --dry-run",
        "wordnet-splits sources fetch svhn --file extra_32x32.mat --dry-run",
    ],
)
def fetch_files(
    source: Annotated[str, typer.Argument(help="A source, as `sources list` names it.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder that becomes its root; data/SOURCE by default.")
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(help="A file of the publisher's (repeatable); by default those that benchmarks need."),
    ] = None,
    mirror: Annotated[
        str | None, typer.Option(help="An address with the same files; the checksums are the publisher's.")
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Take the copy on the Hugging Face Hub.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the publisher's files, checksums and addresses.")
    ] = False,
    json: Json = False,
) -> int:
    """Fetch, check and unpack a dataset where its publisher allows it; else print how to get it.

    Ctrl-C loses nothing: the same command continues where it stopped.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.datasets.fetching import downloads, fetch_source

    if dry_run:
        offers = [
            {"file": f.file, "md5": f.md5, "sha256": f.sha256, "url": url}
            for f, url in downloads(source, files=file or [], mirror=mirror)
        ]
        cells = [(offer["file"], offer["sha256"] or offer["md5"], offer["url"]) for offer in offers]
        columns = ("file", "checksum", "address")
        print_result({"source": source, "files": offers}, json, lambda: print_table(columns, cells))
        return DONE
    fetched = fetch_source(source, out, files=file or [], mirror=mirror, hub=hub, progress=OnStderr())

    def print_files() -> None:
        rows = [(f.file, f"{f.size:,}", "received" if f.received else "was there") for f in fetched.files]
        print_table(("file", "bytes", "state"), rows, right=("bytes",))
        to_stdout(f"{fetched.source} from {fetched.origin}: checksums compared; layout {fetched.layout}")
        to_stdout(f"read it with --root {fetched.source}={fetched.root}")

    print_result(fetched, json, print_files)
    return DONE


@app.command(
    "sources check",
    examples=[
        "wordnet-splits sources check",
        "wordnet-splits sources check --json",
    ],
)
def check_roots(root: RootOptions = None, manifests: Manifests = None, json: Json = False) -> int:
    """Scan the root of every source, and print what each benchmark lacks."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.checks.doctor import carried_declarations, check_sources, read_benchmarks

    benchmarks = read_benchmarks(manifests)
    roots = parse_roots(root or [], carried_declarations(benchmarks))
    by_option = {n: roots[n] for n in (text.partition("=")[0] for text in root or []) if n in roots}
    diagnosis = check_sources(by_option, benchmarks=benchmarks, progress=OnStderr())
    print_result(diagnosis, json, lambda: _print_diagnosis(diagnosis, list(by_option)))
    return DONE


def _print_diagnosis(diagnosis: Diagnosis, only: Collection[str]) -> None:
    """Print the tables of sources and benchmarks; with ``only``, those that concern these sources."""
    shown = diagnosis.of(only) if only else diagnosis
    _print_roots(shown)
    to_stdout()
    _print_benchmarks(shown, only)
    if only:
        sources = len(diagnosis.sources) - len(shown.sources)
        benchmarks = len(diagnosis.benchmarks) - len(shown.benchmarks)
        to_stdout()
        to_stdout(f"not shown: {sources:,} other sources, and {benchmarks:,} benchmarks")
        names = " or ".join(only)
        to_stdout(f"without {names}; `wordnet-splits sources check` without --root, or --json, shows all")


def _print_roots(diagnosis: Diagnosis) -> None:
    from wordnet_splits.benchmark.checks.doctor import held_text

    rows = []
    for s in diagnosis.sources:
        counts = ", ".join(held_text(p) for p in s.splits if (p.held, p.expected) != (None, None))
        free = None if s.free is None else f"{s.free / 1e9:,.1f} GB"
        rows.append(
            (s.name, s.state, s.layout, counts or None, sum(s.unexpected.values()) or None, free, s.root)
        )
    columns = ("source", "state", "layout", "images held of published", "other files", "free disk", "root")
    print_table(columns, rows, right=("other files", "free disk"))
    for s in diagnosis.sources:
        if s.error:
            to_stdout(f"  {root_error(s)}")
        if s.unexpected:
            names = ", ".join(list(s.unexpected)[:SHOWN_NAMES])
            count = sum(s.unexpected.values())
            to_stdout(f"  {s.name}: {count:,} files under no known name, such as {names}")


def root_error(source: SourceState) -> str:
    """Return the fault of a source's root as a line of text."""
    error = source.error or {}
    hint = f" ({error['hint']})" if error["hint"] else ""
    return f"{source.name}: {error['where'] or source.root}: {error['what']}{hint}"


def _print_benchmarks(diagnosis: Diagnosis, only: Collection[str]) -> None:
    """Print a row for each benchmark; with ``only``, other sources are counted in a column of their own."""
    rows = []
    for b in diagnosis.benchmarks:
        state = "complete" if b.complete else "frozen in part" if b.frozen else "not frozen"
        awaits = sorted({a.needs + (" (at hand)" if a.ready else "") for a in _awaited(b, only)})
        incomplete = {s: text for s, text in b.pixels.items() if text not in ("complete", "built in")}
        texts = [f"{s}: {text}" for s, text in incomplete.items() if not only or s in only]
        row = (
            b.name,
            "unreadable" if b.error else state,
            ", ".join(awaits) or None,
            b.ready.runs_here,
            "; ".join(texts) or None,
            len(incomplete) - len(texts) or None,
        )
        rows.append(row if only else row[:-1])
    columns = ("benchmark", "images", "awaits", "runs here", "pixels lacking", "other sources lacking")
    print_table(columns if only else columns[:-1], rows, right=columns[-1:])
    for b in diagnosis.benchmarks:
        if b.error:
            to_stdout(f"  {b.name}: {b.error['where']}: {b.error['what']}")
    reasons = {(a.needs, a.reason) for b in diagnosis.benchmarks for a in _awaited(b, only)}
    print_lines(f"  {needs}: {reason}" for needs, reason in sorted(reasons))


def _awaited(benchmark: BenchmarkState, only: Collection[str]) -> list[Awaited]:
    return [a for a in benchmark.awaits if not only or a.needs.partition(" ")[0] in only]


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
        str | None, typer.Argument(help="A source, or a catalog FILE.tsv; all by default.")
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
