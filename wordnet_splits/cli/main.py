"""The command ``wordnet-splits``: one program, every error one line and an exit code."""

from __future__ import annotations

from wordnet_splits.cli import (
    auditing,
    benchmarks,
    catalogs,
    class_sets,
    datasets,
    exchanging,
    explaining,
    packing,
    publishing,
    robustness,
    site,
)
from wordnet_splits.cli import new_benchmark as own
from wordnet_splits.terminal.options import make_program
from wordnet_splits.terminal.runner import run, start

__all__ = ["app", "main", "run"]

app = make_program(
    "wordnet-splits",
    "Benchmarks for what a vision model does not know: build, check, explain and compare splits.",
    ["wordnet-splits build digits", "wordnet-splits explain unknown-imagenet axolotl"],
)
MODULES = (
    *(benchmarks, class_sets, explaining, catalogs, own, auditing, robustness),
    *(datasets, packing, exchanging, publishing, site),
)
for module in MODULES:
    module.register(app)


def main() -> None:
    """Run ``wordnet-splits``."""
    start(app, "wordnet-splits")


if __name__ == "__main__":
    main()
