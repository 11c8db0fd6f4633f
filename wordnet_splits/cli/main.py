"""The program ``wordnet-splits``."""

from __future__ import annotations

from wordnet_splits.cli import (
    auditing,
    benchmarks,
    catalogs,
    class_sets,
    exchanging,
    explaining,
    hub,
    leaks,
    new_benchmark,
    packing,
    robustness,
    site,
    sources,
    wordnet,
)
from wordnet_splits.terminal.options import make_program
from wordnet_splits.terminal.runner import run, start

__all__ = ["app", "main", "run"]

app = make_program(
    "wordnet-splits",
    "Benchmarks for what a vision model does not know: build, check, explain and compare splits.",
    ["wordnet-splits build digits", "wordnet-splits explain unknown-imagenet axolotl"],
)
MODULES = (
    *(benchmarks, class_sets, explaining, new_benchmark, auditing, robustness, leaks, packing, exchanging),
    *(site, wordnet, sources, catalogs, hub),
)
for module in MODULES:
    module.add_commands(app)


def main() -> None:
    """Run ``wordnet-splits``."""
    start(app, "wordnet-splits")


if __name__ == "__main__":
    main()
