"""The command ``unknown-eval report``: results as one page."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.catalog.declarations import Declaration, merge_declarations
from wordnet_splits.finding import find_manifest
from wordnet_splits.manifest import read_manifest
from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.terminal.options import Json, PackedOption, RootOptions
from wordnet_splits.terminal.output import DONE, print_json, to_stderr

from ..evaluation.results import benchmark_of
from ..reporting.write_report import MISTAKES, report
from .compare import ResultFolders
from .printing import Detectors, names_of


def report_results(
    results: ResultFolders,
    out: Annotated[Path, typer.Option(help="The page, one .html file that needs no other.")] = Path(
        "report.html"
    ),
    detectors: Detectors = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates behind the intervals of the ranking; 0 for none.")
    ] = 0,
    mistakes: Annotated[
        int, typer.Option(min=0, help="Of each kind that are shown, of the best detector.")
    ] = MISTAKES,
    root: RootOptions = None,
    packed: PackedOption = None,
    json: Json = False,
) -> int:
    """Write results as one page: tables, plots, worst mistakes, and how to repeat it."""
    own: dict[str, Declaration] = {}
    with suppress(SplitsError):  # a benchmark that is not here has no pictures: the page says so
        own = merge_declarations(
            read_manifest(find_manifest(benchmark_of(one))).own for one in results if root
        )
    path = report(
        results,
        out,
        detectors=names_of(detectors),
        bootstrap=bootstrap,
        mistakes=mistakes,
        roots=parse_roots(root or [], own),
        packed=packed,
    )
    if json:
        print_json({"out": str(path), "bytes": path.stat().st_size})
    to_stderr(f"report in {path}")
    return DONE
