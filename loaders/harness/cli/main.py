"""The program ``unknown-eval``: evaluate models on benchmarks, check results, list detectors, train."""

from __future__ import annotations

from typing import Final

from wordnet_splits.base.terminal.runner import Program

PACKAGE: Final = str(__package__)
TRAIN: Final = "unknown-eval train --benchmark digits --recipe digits-demo --epochs 1 --out models"
RUN: Final = "unknown-eval run --benchmark digits --model trained:models/digits --out results"

app: Final = Program(
    "unknown-eval",
    "Measure what a vision model does not know: any model and detector on any frozen benchmark.",
    [TRAIN, RUN],
    headings=("Train", "Evaluate", "Results", "Compare", "Deploy"),
    folder=PACKAGE,  # not by name: a foreign package called loaders may come first
    rooms=PACKAGE.rpartition(".")[0],
)


def main() -> None:
    """Run ``unknown-eval``."""
    app.start()


if __name__ == "__main__":
    from loaders.harness.cli import main as module  # with the ``app`` that the commands are registered in

    module.main()
