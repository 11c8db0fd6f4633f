"""The program ``unknown-eval``: evaluate models on benchmarks, check results, list detectors, train."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import typer

from wordnet_splits.base.terminal.options import make_overview
from wordnet_splits.base.terminal.runner import start

CORE: Final = ("run", "results", "detectors")
"""Modules of the commands of the core."""

HEADINGS: Final = {
    "Train": ("train", "recipes", "audit-method"),
    "Evaluate": ("run", "merge-shards", "ids", "detectors"),
    "Results": ("check-results", "remeasure", "table", "scores", "recompute", "submit"),
    "Compare": ("compare", "nearness", "hierarchy", "plot", "report"),
    "Deploy": ("export-detector", "score"),
}
"""Headings of the overview."""

app: typer.Typer
"""The program with all commands, made when it is first used."""


def make_app(command: str | None = None) -> typer.Typer:
    """Return the program with all commands, or with those of the modules that add one command."""
    train = "unknown-eval train --benchmark digits --recipe digits-demo --epochs 1 --out models"
    run = "unknown-eval run --benchmark digits --model trained:models/digits --out results"
    return make_overview(
        "unknown-eval",
        "Measure what a vision model does not know: any model and detector on any frozen benchmark.",
        [train, run],
        headings=HEADINGS,
        core=[Path(__file__).with_name(f"{name}.py") for name in CORE],
        package=str(__package__).removesuffix(".cli"),
        command=command,
    )


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = make_app()
    return globals()[name]


def main() -> None:
    """Run ``unknown-eval``."""
    start(make_app(next(iter(sys.argv[1:]), None)), "unknown-eval")


if __name__ == "__main__":
    main()
