"""The command ``unknown-eval plot``: pictures of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.terminal.options import Json
from wordnet_splits.terminal.output import DONE, print_json, print_table, to_stderr

from ..plots.plot_results import GRAPH, GRAPH_TITLE, GRAPHML, plot
from ..plots.registry import list_plots
from .printing import Detectors, names_of

LIST = "list"


def plot_results(
    results: Annotated[
        list[Path] | None, typer.Argument(help="Folders that `run` wrote, on one benchmark.")
    ] = None,
    what: Annotated[str, typer.Option(help="What to draw, or 'list' for all there is.")] = LIST,
    out: Annotated[Path | None, typer.Option(help="A .svg, .png or .pdf file; by default WHAT.svg.")] = None,
    detectors: Detectors = None,
    group: Annotated[
        list[str] | None, typer.Option(help="An OOD set to draw, of all by default; repeatable.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="In place of AUROC, where there is a choice.")] = None,
    store: Annotated[Path | None, typer.Option(help="Folder of activations, for what needs softmax.")] = None,
    json: Json = False,
) -> int:
    """Draw results: curves, densities, heat maps, scatter plots and the papers' figures."""
    if what == LIST:
        return _list_plots(json=json)
    if not results:
        raise SplitsError(
            "no results are given", where="unknown-eval plot", hint="give folders that `run` wrote"
        )
    path = out or Path(f"{what}{GRAPHML if what == GRAPH else '.svg'}")
    plot(
        results,
        what,
        path,
        detectors=names_of(detectors),
        groups=group,
        metric=metric,
        store=store,
    )
    if json:
        print_json({"what": what, "out": str(path)})
    to_stderr(f"{what} in {path}")
    return DONE


def _list_plots(*, json: bool) -> int:
    rows = [(kind.name, kind.title, kind.paper) for kind in list_plots()]
    rows.append((GRAPH, GRAPH_TITLE, "Recalcati, figure 4"))
    rows.sort()
    if json:
        keys = ("name", "title", "paper")
        print_json({"plots": [dict(zip(keys, row, strict=True)) for row in rows]})
        return DONE
    print_table(("plot", "what it shows", "figure"), [(n, t, paper or None) for n, t, paper in rows])
    return DONE
