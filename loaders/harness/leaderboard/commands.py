"""The command that writes an entry of a leaderboard: submit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.progress import OnStderr
from wordnet_splits.base.terminal.options import Json
from wordnet_splits.base.terminal.output import (
    DONE,
    print_result,
    to_stderr,
    to_stdout,
)
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.manifest.loading import shipped_data
from wordnet_splits.hub.entries import read_entry

from ..cli.main import app


@app.command(
    "submit",
    heading="Results",
    examples=[
        "unknown-eval submit results --by me --name digits-linear --out entries",
        "unknown-eval submit results --by me --name digits-linear --out entries --note 'One layer.' --json",
    ],
)
def submit_results(
    results: Annotated[Path, typer.Argument(help="A folder that `run` wrote.")],
    by: Annotated[str, typer.Option(help="Name or account of the submitter.")],
    name: Annotated[str | None, typer.Option(help="Name of the entry; by default the folder's.")] = None,
    url: Annotated[str, typer.Option(help="Address of a paper or of code.")] = "",
    note: Annotated[str, typer.Option(help="One sentence, shown with the entry.")] = "",
    outliers: Annotated[
        str, typer.Option(help="Outlier images that the networks were trained on; shown with the entry.")
    ] = "",
    commands: Annotated[
        Path | None,
        typer.Option(help="File of the commands that were run, one a line; by default the recorded command."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of entries; by default manifests/results of this checkout.")
    ] = None,
    hub: Annotated[
        str | None,
        typer.Option(
            metavar="ORG/NAME", help="The benchmark's dataset repository on the Hub; see --model-repo."
        ),
    ] = None,
    model_repo: Annotated[
        Path | None,
        typer.Option(help="Folder of the model's repository, for .eval_results of the Hub."),
    ] = None,
    json: Json = False,
) -> int:
    """Check results and write them as an entry of a leaderboard."""
    from .submission import submit

    lines = [] if commands is None else [line for line in read_text(commands).splitlines() if line.strip()]
    folder = submit(
        results,
        by=by,
        name=name,
        url=url,
        note=note,
        outliers=outliers,
        commands=lines,
        to=out,
        hub=hub,
        model_repo=model_repo,
        progress=OnStderr(),
    )
    entry = read_entry(folder)
    facts = entry.facts
    summary = f"{entry.name}: {len(facts.detectors)} detectors on {facts.benchmark}, written to {folder}"
    result = {"out": str(folder), **entry.model_dump(mode="json", by_alias=True)}
    print_result(result, json, lambda: to_stdout(summary))
    if facts.classes is None:
        to_stderr(f"note: {facts.benchmark} is not available here, so its images were not compared")
    incomplete = [row.group for row in facts.sets if row.scored != row.expected]
    if incomplete:
        to_stderr(f"note: some images were not scored: {', '.join(incomplete)}")
    to_stderr(f"next: {_next_step(facts.benchmark, folder)}")
    return DONE


def _next_step(benchmark: str, folder: Path) -> str:
    """Return where an entry belongs: in this checkout, or next to a custom benchmark."""
    if shipped_data(benchmark) is None:
        return (
            f"keep it as results/{folder.name} next to the folders of the benchmarks: "
            "`wordnet-splits hub publish` sends it along, `unknown-eval recompute FOLDER --check` compares it"
        )
    return "commit the folder and open a pull request; `make check-results` recomputes it"
