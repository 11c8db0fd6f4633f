"""The last step: as much of Kim et al.'s table 6 as fits: networks by their recipe, and their detectors."""

from __future__ import annotations

import argparse
import sys
import tarfile
import time
from pathlib import Path

from loaders.harness import evaluate, train_recipe
from loaders.harness.detectors import parse_detectors
from loaders.harness.training.data import DeviceData, load_training_data
from loaders.harness.training.machine import choose_machine, reproducible
from loaders.harness.training.recipe import TrainingRecipe, load_recipe
from loaders.harness.training.runs import plan_runs
from loaders.harness.training.trainer import Trainer
from wordnet_splits.base import files
from wordnet_splits.base.progress import Silent
from wordnet_splits.base.text_formats import read_json

from .figures import Figures, step_arguments

NETWORKS = {"resnet20": 0.4, "resnet18": 0.35}
"""Network -> its share of the step's time; evaluation gets the remainder."""
SEEDS, FEWEST_EPOCHS = 3, 5
SLOWER = 1.15
"""Ratio of an epoch's time to its trial's: each epoch also validates and writes its state."""


def planned(seconds: float, per_epoch: float, epochs: int) -> tuple[int, int]:
    """Return the epochs and seeds that fit: the most epochs with all seeds, fewer seeds if too few; or 0.

    >>> planned(100, 0.5, 200), planned(10, 1.0, 200), planned(3, 1.0, 200)
    ((57, 3), (8, 1), (0, 0))
    """
    for seeds in range(SEEDS, 0, -1):
        fits = int(seconds / (seeds * per_epoch * SLOWER))
        if fits >= min(FEWEST_EPOCHS, epochs):
            return min(fits, epochs), seeds
    return 0, 0


def plan(recipe: TrainingRecipe, options: argparse.Namespace) -> dict[str, list[int]]:
    """Return network -> [epochs, seeds]; an earlier run's plan is kept, to train its models further."""
    file = options.work / "plan.json"
    if file.exists():
        return dict(read_json(file))
    epochs_and_seeds = {}
    if options.tiny:
        epochs_and_seeds[recipe.network] = [1, 2]
    else:
        machine = choose_machine(options.device)
        data = DeviceData.from_data(
            load_training_data(options.benchmark, packed=options.packed), machine.device
        )
        for network, share in NETWORKS.items():
            (run,) = plan_runs(recipe, network=network)
            with reproducible(machine.device):
                trainer, began = Trainer(run, data, machine), time.monotonic()
                trainer.train_epoch(0, Silent())
                per_epoch = time.monotonic() - began
            epochs, seeds = planned(share * options.seconds, per_epoch, recipe.epochs)
            print(f"{network}: {per_epoch:.2f} s an epoch: {seeds} seeds of {epochs} epochs", flush=True)
            epochs_and_seeds[network] = [epochs, seeds]
    files.write_json(file, epochs_and_seeds)
    return epochs_and_seeds


def main() -> int:
    """Train and evaluate; return 1 if nothing fits."""
    parser = step_arguments("table 6")
    parser.add_argument("--benchmark", required=True)
    parser.add_argument("--packed", action="append", help="of packed images")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True, help="the archive of the results")
    options = parser.parse_args()
    ends, figures = time.monotonic() + options.seconds, Figures(options.figures)
    options.work.mkdir(parents=True, exist_ok=True)
    recipe = load_recipe("digits-demo" if options.tiny else "kim-cifar")
    models: dict[str, list[str]] = {}
    for network, (epochs, seeds) in plan(recipe, options).items():
        if not epochs:
            figures.add(network, "no time for it")
            continue
        began = time.monotonic()
        trained = train_recipe(
            recipe,
            options.benchmark,
            options.work / "models",
            network=network,
            seeds=range(seeds),
            epochs=epochs,
            packed=options.packed,
            device=options.device,
            command=" ".join(sys.argv),
            progress=Silent(),
            notify=lambda text: print(text, flush=True),
        )
        models[f"{network}, {epochs} epochs"] = [f"trained:{model.folder}" for model in trained]
        figures.add(
            f"{network}: {seeds} seeds of {epochs} of {recipe.epochs} epochs",
            f"{time.monotonic() - began:.0f} s, "
            f"val accuracy {', '.join(str(t.metadata['selected'].get('val_accuracy')) for t in trained)}",
        )
    if not models:
        return 1
    print(f"{ends - time.monotonic():.0f} s are left for the evaluation", flush=True)
    detectors = [detector.label for detector in parse_detectors("preset:kim", benchmark=options.benchmark)]
    print(f"preset kim: {', '.join(detectors)}", flush=True)
    results = evaluate(
        models,
        options.benchmark,
        "preset:kim",
        packed=options.packed,
        allow_missing=True,
        store=options.work / "activations",
        device=options.device,
    )
    folder = options.work / "results"
    results.write(folder, overwrite=True)
    with files.replacing(options.results) as part, tarfile.open(part, "w") as archive:
        archive.add(folder, "results")
    figures.add("table 6, the paper's rows beside ours", str(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
