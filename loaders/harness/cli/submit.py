"""The command ``unknown-eval submit``: results become an entry of the leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.progress import OnStderr
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.leaderboard import read_entry
from wordnet_splits.manifest.shipped import shipped_data
from wordnet_splits.terminal.options import Json
from wordnet_splits.terminal.output import DONE, print_json, to_stderr, to_stdout

from ..leaderboard.submit import submit


def submit_results(
    results: Annotated[Path, typer.Argument(help="A folder that `run` wrote.")],
    by: Annotated[str, typer.Option(help="Who submits them: a name, or an account.")],
    name: Annotated[str | None, typer.Option(help="Of the entry; by default the folder's.")] = None,
    url: Annotated[str, typer.Option(help="Of a paper or of code.")] = "",
    note: Annotated[str, typer.Option(help="One sentence, shown beside the entry.")] = "",
    commands: Annotated[
        Path | None,
        typer.Option(help="A file of the commands that were run, a line each; else what the results record."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="Folder of entries; by default manifests/results of this checkout.")
    ] = None,
    json: Json = False,
) -> int:
    """Check results and write them as an entry of a leaderboard."""
    lines = [] if commands is None else [line for line in read_text(commands).splitlines() if line.strip()]
    folder = submit(results, by=by, name=name, url=url, note=note, commands=lines, to=to, progress=OnStderr())
    entry = read_entry(folder)
    facts = entry.facts
    if json:
        print_json({"out": str(folder), **entry.model_dump(mode="json", by_alias=True)})
    else:
        to_stdout(f"{entry.name}: {len(facts.detectors)} detectors on {facts.benchmark}, written to {folder}")
    if facts.classes is None:
        to_stderr(f"note: there is no {facts.benchmark} here, so its images were compared with nothing")
    short = [one.group for one in facts.sets if one.scored != one.expected]
    if short:
        to_stderr(f"note: not every image was scored of {', '.join(short)}")
    to_stderr(f"next: {_next_step(facts.benchmark, folder)}")
    return DONE


def _next_step(benchmark: str, folder: Path) -> str:
    """Say where an entry belongs: that of a shipped benchmark here, any other beside its own benchmark."""
    if shipped_data(benchmark) is None:
        return (
            f"keep it as results/{folder.name} beside the folders of the benchmarks: "
            "`wordnet-splits hub publish` sends it along, `unknown-eval check-results` recomputes it"
        )
    return "commit the folder and open a pull request; `make check-results` recomputes it"
