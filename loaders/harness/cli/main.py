"""The command ``unknown-eval``: put models through benchmarks, check results, list detectors, train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wordnet_splits.cli.output import DONE, NEGATIVE, print_json, print_table
from wordnet_splits.cli.runner import start
from wordnet_splits.progress import OnStderr

from .run import run
from .train import register

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
SHOWN_PROBLEMS = 20

app = typer.Typer(
    name="unknown-eval",
    help="Measure what a vision model does not know: any model and detector on any frozen benchmark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run)


@app.command("check-results")
def check_results_folder(
    folder: Annotated[Path, typer.Argument(help="A folder that `run` wrote.")], json: Json = False
) -> int:
    """Recompute every row of a results folder from its stored confidences; exit 1 where one differs."""
    from ..evaluation.check import check_results

    found = check_results(folder, progress=OnStderr())
    if json:
        print_json(found.as_dict())
        return DONE if found.ok else NEGATIVE
    for problem in found.problems[:SHOWN_PROBLEMS]:
        values = f"stored {problem.stored}, due {problem.recomputed}"
        print(f"{problem.table}: {problem.row}: {problem.column} {values}")
    if len(found.problems) > SHOWN_PROBLEMS:
        print(f"and {len(found.problems) - SHOWN_PROBLEMS:,} more (--json has all)")
    outcome = "all recompute" if found.ok else f"{len(found.problems):,} differ"
    print(f"{found.rows:,} rows, {found.values:,} values, {found.exact:,} equal to the last bit: {outcome}")
    return DONE if found.ok else NEGATIVE


@app.command("detectors")
def show_detectors(
    pattern: Annotated[str, typer.Argument(help="A name or wildcard pattern.")] = "*", json: Json = False
) -> int:
    """List detectors with their parameters, what they fit on and their papers; and presets."""
    from ..detectors import get_method, list_detectors, preset, preset_names

    methods = [get_method(name) for name in list_detectors(pattern)]
    presets = [preset(name) for name in preset_names()]
    if json:
        print_json(
            {
                "detectors": [_detector_row(method) for method in methods],
                "presets": [
                    {"name": p.name, "paper": p.paper, "detectors": p.detectors, "absent": p.absent}
                    for p in presets
                ],
            }
        )
        return DONE
    print_table(
        ("detector", "also", "parameters", "fits on", "what", "paper"),
        [
            (
                m.name,
                ", ".join(m.aliases) or None,
                ", ".join(f"{k}={v}" for k, v in m.parameters.items()) or None,
                m.fit_on and f"ID {m.fit_on}",
                m.summary,
                m.paper and f"{m.paper.authors.partition(',')[0]} {m.paper.year}",
            )
            for m in methods
        ],
    )
    print()
    print_table(
        ("preset", "detectors", "not built yet"),
        [(p.name, ", ".join(p.detectors), ", ".join(p.absent) or None) for p in presets],
    )
    return DONE


def _detector_row(method: Any) -> dict[str, Any]:
    return {
        "name": method.name,
        "aliases": method.aliases,
        "parameters": dict(method.parameters),
        "needs": method.needs,
        "fit_on": method.fit_on,
        "sweep": {key: list(values) for key, values in method.sweep.items()},
        "models": method.models,
        "summary": method.summary,
        "paper": str(method.paper) if method.paper else None,
    }


register(app)


def main() -> None:
    """Run ``unknown-eval``."""
    start(app, "unknown-eval")


if __name__ == "__main__":
    main()
