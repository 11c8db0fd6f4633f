"""The program ``wordnet-splits``."""

from __future__ import annotations

from typing import Final

from wordnet_splits.base.terminal.runner import Program, run

__all__ = ["app", "main", "run"]

app: Final = Program(
    "wordnet-splits",
    "Benchmarks for what a vision model does not know: build, check, explain and compare splits.",
    ["wordnet-splits build digits", "wordnet-splits explain unknown-imagenet axolotl"],
    headings=("Use", "Make", "Question", "Publish", "Data"),
    folder="wordnet_splits.cli",
    rooms="wordnet_splits",
)


def main() -> None:
    """Run ``wordnet-splits``."""
    app.start()


if __name__ == "__main__":
    from wordnet_splits.cli import main as module  # with the ``app`` that the commands are registered in

    module.main()
