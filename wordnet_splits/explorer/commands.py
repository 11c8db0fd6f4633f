"""The command that writes the explorer as a folder of pages: site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.progress import OnStderr
from wordnet_splits.base.terminal.options import Json, Manifests, RootOptions
from wordnet_splits.base.terminal.output import DONE, print_result, to_stderr, to_stdout
from wordnet_splits.cli.main import app

MiB = 1 << 20


@app.command(
    "site",
    heading="Publish",
    examples=[
        "wordnet-splits site digits --out pages",
        "wordnet-splits site digits --out pages --json",
    ],
)
def write_site(
    out: Annotated[Path, typer.Option(help="The folder to write; an earlier site there is replaced.")],
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(metavar="BENCHMARK", help="Names or folders; by default every frozen one."),
    ] = None,
    manifests: Manifests = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder of leaderboard entries; by default manifests/results of a checkout."),
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(help="The table of `make audit`; by default docs/audit.parquet of a checkout."),
    ] = None,
    root: RootOptions = None,
    images: Annotated[
        int | None,
        typer.Option(min=0, max=100, help="Most sample images of a class; 4 by default with --root."),
    ] = None,
    json: Json = False,
) -> int:
    """Write benchmarks, evidence, audits and results as a site that needs no server and no network.

    A site of named benchmarks has only what concerns them, and how far the roles hold in other readings of
    the rules. With --root it shows images of their classes, if the licence of the source allows it.
    """
    from wordnet_splits.benchmark.resolve import declarations_of
    from wordnet_splits.datasets.sources.roots import parse_roots
    from wordnet_splits.explorer import make_site

    flags = {text.partition("=")[0] for text in root or ()}
    parsed = parse_roots(root, declarations_of(*benchmarks or (), manifests=manifests)) if root else {}
    site = make_site(
        out,
        benchmarks or (),
        manifests=manifests,
        results=results,
        audit=audit,
        roots={name: folder for name, folder in parsed.items() if name in flags},
        images=images,
        progress=OnStderr(),
    )
    number = len(site.benchmarks)
    noun = "benchmark" if number == 1 else "benchmarks"
    size = f"{number} {noun}, {site.files} files, {site.bytes / MiB:.1f} MiB"
    print_result(site, json, lambda: to_stdout(f"{size}: open {site.out / 'index.html'}"))
    for sentence in site.withheld:
        to_stderr(f"note: {sentence}")
    for page, option in (("leaderboard", "--results"), ("audit", "--audit")):
        if page not in site.pages and not benchmarks:
            to_stderr(f"note: left out the page {page}; give {option}, or run in a checkout")
    return DONE
