"""The command ``wordnet-splits``: one program, every error one line and an exit code."""

from __future__ import annotations

import typer

from wordnet_splits.cli import benchmarks, datasets, explaining, packing
from wordnet_splits.cli.runner import run, start

__all__ = ["app", "main", "run"]

app = typer.Typer(
    name="wordnet-splits",
    help="Benchmarks for what a vision model does not know: build, check, explain and compare splits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for module in (benchmarks, explaining, datasets, packing):
    module.register(app)


def main() -> None:
    """Run ``wordnet-splits``."""
    start(app, "wordnet-splits")


if __name__ == "__main__":
    main()
