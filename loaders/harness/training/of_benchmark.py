"""A recipe and a benchmark: `train` gives the models, as the command of that name does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from wordnet_splits.manifest import Manifest
from wordnet_splits.progress import Progress, Silent
from wordnet_splits.sources.roots import Roots

from ...opening import PackedFolders
from .choices import LOSSES
from .data import load_training_data
from .recipe import TrainingRecipe, load_recipe
from .runs import Trained, choose_machine, plan_runs, train_runs


def train(
    benchmark: Manifest | str | Path,
    recipe: TrainingRecipe | str,
    out: str | Path,
    *,
    network: str | None = None,
    seeds: Sequence[int] = (0,),
    optimizers: Sequence[str] = (),
    epochs: int | None = None,
    start: str | None = None,
    roots: Roots | None = None,
    packed: PackedFolders | None = None,
    device: str | None = None,
    precision: str = "auto",
    command: str | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Trained]:
    """Train models of a benchmark's ID classes; killed runs resume, finished ones are kept.

    Parameters
    ----------
    benchmark : a manifest, its name, or its folder.
    recipe : a training recipe, its name, or a TOML file of one.
    out : folder of the models: ``out/<benchmark>/<run>/``, which ``trained:`` names for `evaluate`.
    network : by default the recipe's. seeds : of the runs. optimizers : of the recipe's; all by default.
    epochs : in place of the recipe's; the schedule is scaled.
    start : series of runs in ``out`` to train further, for recipes that do.
    roots, packed : as of `loaders.UnknownDetectionSet`.
    device, precision : of `choose_machine`. command : kept with the models. say : called with each line.

    Raises
    ------
    SplitsError : a name that does not exist, images or a device that are not there, a folder of other runs.
    """
    chosen = load_recipe(recipe) if isinstance(recipe, str) else recipe
    chosen = chosen.with_epochs(epochs) if epochs else chosen
    runs = plan_runs(chosen, network=network, optimizers=optimizers, seeds=seeds)
    machine = choose_machine(device, precision)
    data = load_training_data(
        benchmark,
        roots=roots,
        packed=packed,
        negatives=LOSSES[chosen.loss.name].negatives != "none",
        progress=progress or Silent(),
    )
    return train_runs(
        runs, data, Path(out), machine, command=command, start=start, progress=progress, say=say
    )
