"""The command ``unknown-eval nearness``: does semantic distance predict difficulty?"""

from __future__ import annotations

from typing import Annotated

import typer

from wordnet_splits.terminal.options import Json
from wordnet_splits.terminal.output import DONE, print_json, to_stderr, to_stdout

from ..comparison.class_nearness import REPLICATES, nearness
from .compare import ResultFolders
from .printing import Detectors, names_of, print_tables


def correlate_nearness(
    results: ResultFolders,
    detectors: Detectors = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="An OOD set to take classes of, all near and far by default; repeatable."),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates of the bootstrap over OOD classes; 0 for none.")
    ] = REPLICATES,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    json: Json = False,
) -> int:
    """Correlate how near OOD classes are with how hard they are to detect, by detector and measure."""
    found = nearness(
        results, detectors=names_of(detectors), groups=group, bootstrap=bootstrap, seed=seed_boot
    )
    if json:
        print_json(found.as_dict())
    else:
        print_tables(found.tables())
    for note in found.notes:
        to_stderr(f"note: {note}") if json else to_stdout(note)
    return DONE
