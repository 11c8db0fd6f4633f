"""The command ``unknown-eval``: evaluate models on benchmarks, check results, list detectors, train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wordnet_splits.cli.options import Json, add_command, make_program
from wordnet_splits.cli.output import DONE, NEGATIVE, print_json, print_table, say_some, show
from wordnet_splits.cli.runner import start
from wordnet_splits.progress import OnStderr

from . import train
from .run import run

SHOWN_DIFFERENCES = 20

RUN = "unknown-eval run --benchmark digits --model trained:models/digits --out results"

app = make_program(
    "unknown-eval",
    "Measure what a vision model does not know: any model and detector on any frozen benchmark.",
    [train.EXAMPLE, RUN],
)


def check_results_folder(
    folder: Annotated[Path, typer.Argument(help="A folder that `run` wrote.")], json: Json = False
) -> int:
    """Recompute every row of a results folder from its stored confidences; exit 1 where one differs."""
    from ..evaluation.check import check_results

    found = check_results(folder, progress=OnStderr())
    if json:
        print_json(found.as_dict())
        return DONE if found.ok else NEGATIVE
    lines = [
        f"{d.table}: {d.row}: {d.column} stored {d.stored}, recomputed {d.recomputed}"
        for d in found.differences
    ]
    say_some(lines, SHOWN_DIFFERENCES, write=show)
    outcome = "all recompute" if found.ok else f"{len(found.differences):,} differ"
    counts = f"{found.compared:,} rows, {found.values:,} values, {found.exact:,} equal to the last bit"
    show(f"{counts}; {found.benchmark}: {outcome}")
    return DONE if found.ok else NEGATIVE


def show_detectors(
    pattern: Annotated[str, typer.Argument(help="A name or wildcard pattern.")] = "*", json: Json = False
) -> int:
    """List detectors with their parameters, what they fit on and their papers; and presets."""
    from ..detectors import get_method, list_detectors, preset, preset_names
    from ..detectors.registry import SPLITS

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
                ", ".join(SPLITS[split] for split in m.splits) or None,
                m.summary,
                m.paper and f"{m.paper.authors.partition(',')[0]} {m.paper.year}",
            )
            for m in methods
        ],
    )
    show()
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


train.register(app)
add_command(app, "run", run, [RUN, f"{RUN} --detectors msp,knn[k=10] --bootstrap 100 --json"])
check = "unknown-eval check-results results"
add_command(app, "check-results", check_results_folder, [check, f"{check} --json"])
add_command(
    app, "detectors", show_detectors, ["unknown-eval detectors", "unknown-eval detectors 'm*' --json"]
)


def main() -> None:
    """Run ``unknown-eval``."""
    start(app, "unknown-eval")


if __name__ == "__main__":
    main()
