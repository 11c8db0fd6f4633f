"""The command ``wordnet-splits site``: the explorer as a folder of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.progress import OnStderr
from wordnet_splits.terminal.options import Json, Manifests, add_command
from wordnet_splits.terminal.output import DONE, print_json, to_stderr, to_stdout

MiB = 1 << 20


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    examples = ["wordnet-splits site digits --out pages", "wordnet-splits site digits --out pages --json"]
    add_command(app, "site", write_site, examples)


def write_site(
    out: Annotated[Path, typer.Option(help="The folder to write: new, or a site written before.")],
    benchmarks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BENCHMARK]...", help="Names or folders; by default every frozen one."),
    ] = None,
    manifests: Manifests = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Folder of entries of the leaderboard; by default manifests/results of a checkout."
        ),
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(help="What `make audit` wrote; by default docs/audit.parquet of a checkout."),
    ] = None,
    json: Json = False,
) -> int:
    """Write benchmarks, evidence, audits and results as a site: no server, no request to anywhere."""
    from wordnet_splits.site import make_site

    found = make_site(
        out, benchmarks or (), manifests=manifests, results=results, audit=audit, progress=OnStderr()
    )
    if json:
        print_json(found.as_dict())
    else:
        told = f"{len(found.benchmarks)} benchmarks, {found.files} files, {found.size / MiB:.1f} MiB"
        to_stdout(f"{told}: open {found.folder / 'index.html'}")
    for page, option in (("leaderboard", "--results"), ("audit", "--audit")):
        if page not in found.pages:
            to_stderr(f"note: no page of the {page}: there is no checkout here, and no {option}")
    return DONE
