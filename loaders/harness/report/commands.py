"""Commands that draw results and write them as a page: plot, report."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.terminal.options import Cut, Json, PackedOption, RootOptions
from wordnet_splits.base.terminal.output import DONE, print_result, print_table, to_stderr
from wordnet_splits.benchmark.manifest.loading import read_declarations
from wordnet_splits.benchmark.resolve import find_manifest
from wordnet_splits.datasets.catalog.declarations import Declaration, merge_declarations
from wordnet_splits.datasets.sources.roots import parse_roots

from ..cli.main import app
from ..results.metadata import check_level
from ..results.printing import Detectors, Over, split_labels
from ..results.results import benchmark_of
from .accessor import GRAPH, GRAPH_TITLE, GRAPHML, plot
from .plots.selection import list_plots
from .write_report import MISTAKES, report

LIST = "list"

ResultFolders = Annotated[list[Path], typer.Argument(help="Folders that `run` wrote, on one benchmark.")]
Best = Annotated[
    int | None,
    typer.Option(
        min=1, help="Number of models in plots, the best by the paper's primary metric; all by default."
    ),
]


@app.command(
    "plot",
    heading="Compare",
    examples=[
        "unknown-eval plot --what list",
        "unknown-eval plot results --what roc --group uniform --out roc.svg",
    ],
)
def plot_results(
    results: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders that `run` wrote, on one benchmark (`cliques`: on any)."),
    ] = None,
    kind: Annotated[str, typer.Option("--what", help="Kind of plot, or 'list' for all kinds.")] = LIST,
    out: Annotated[Path | None, typer.Option(help="A .svg, .png or .pdf file; by default WHAT.svg.")] = None,
    detectors: Detectors = None,
    group: Annotated[
        list[str] | None, typer.Option(help="An OOD set to draw, all by default; repeatable.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="In place of AUROC, where there is a choice.")] = None,
    store: Annotated[Path | None, typer.Option(help="Folder of activations, for plots of softmax.")] = None,
    best: Best = None,
    over: Over = "images",
    cut: Cut = None,
    json: Json = False,
) -> int:
    """Draw results: curves, densities, heat maps, scatter plots and the papers' figures."""
    if kind == LIST:
        return _list_plots(json=json)
    if not results:
        raise SplitsError(
            "no results are given", where="unknown-eval plot", hint="give folders that `run` wrote"
        )
    path = out or Path(f"{kind}{GRAPHML if kind == GRAPH else '.svg'}")
    labels = split_labels(detectors)
    part = {"detectors": labels, "groups": group, "metric": metric, "store": store, "best": best}
    plot(results, kind, path, **part, over=check_level(over, cut), cut=cut)
    print_result({"what": kind, "out": str(path)}, json)
    to_stderr(f"{kind} in {path}")
    return DONE


def _list_plots(*, json: bool) -> int:
    rows = [(plot_kind.name, plot_kind.title, plot_kind.paper) for plot_kind in list_plots()]
    rows.append((GRAPH, GRAPH_TITLE, "Recalcati, figure 4"))
    rows.sort()
    plots = {"plots": [{"name": name, "title": title, "paper": paper} for name, title, paper in rows]}
    cells = [(name, title, paper or None) for name, title, paper in rows]
    print_result(plots, json, lambda: print_table(("plot", "what it shows", "figure"), cells))
    return DONE


@app.command(
    "report",
    heading="Compare",
    examples=[
        "unknown-eval report results",
        "unknown-eval report results --bootstrap 20 --over classes --out page.html --json",
    ],
)
def report_results(
    results: ResultFolders,
    out: Annotated[Path, typer.Option(help="The page, one .html file that needs no other.")] = Path(
        "report.html"
    ),
    detectors: Detectors = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates behind the intervals of the ranking; 0 for none.")
    ] = 0,
    over: Over = "images",
    cut: Cut = None,
    best: Best = None,
    mistakes: Annotated[
        int, typer.Option(min=0, help="Number of mistakes of each kind, of the best detector.")
    ] = MISTAKES,
    root: RootOptions = None,
    packed: PackedOption = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of activations, for answers in the hierarchy.")
    ] = None,
    json: Json = False,
) -> int:
    """Write results as one page: tables, plots, worst mistakes, and how to repeat it."""
    declarations: dict[str, Declaration] = {}
    with suppress(SplitsError):  # without its benchmark the page has no thumbnails, and says so
        declarations = merge_declarations(
            read_declarations(find_manifest(benchmark_of(folder))) for folder in results if root
        )
    path = report(
        results,
        out,
        detectors=split_labels(detectors),
        bootstrap=bootstrap,
        over=over,
        cut=cut,
        best=best,
        mistakes=mistakes,
        roots=parse_roots(root or [], declarations),
        packed=packed,
        store=store,
    )
    print_result({"out": str(path), "bytes": path.stat().st_size}, json)
    to_stderr(f"report in {path}")
    return DONE
