"""Train models of a benchmark: one folder per run, resumed or skipped, with its metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import check_counts
from wordnet_splits.base.progress import Progress, Silent, choose_messages, choose_progress
from wordnet_splits.base.untrusted import import_object
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.datasets.sources.roots import Roots

from ...opening import PackedFolders
from ..data.parameters import file_identity
from ..models.sources.registry import METADATA
from .checkpoint import read_metadata
from .choices import named_code
from .data import DeviceData, TrainingData, load_training_data
from .fitting import Callback, TrainedRun, announce_cost, fit, same_request
from .machine import Machine, choose_machine, reproducible
from .methods.interface import BACKBONE, Method
from .recipe import Run, TrainingRecipe, load_recipe
from .starting import open_start, with_start
from .trainer import Trainer


def train_recipe(
    recipe: TrainingRecipe | str,
    benchmark: Manifest | str | Path,
    out: str | Path,
    *,
    method: str | Method | None = None,
    network: str | None = None,
    seeds: Sequence[int] | None = None,
    optimizers: Sequence[str] = (),
    epochs: int | None = None,
    images: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    start: str | None = None,
    allow_leaks: bool = False,
    roots: Roots | None = None,
    packed: PackedFolders | None = None,
    device: str | None = None,
    precision: str = "auto",
    callbacks: Sequence[Callback] = (),
    command: str | None = None,
    progress: Progress | bool | None = None,
    notify: Callable[[str], None] | None = None,
    trust_model: bool = False,
) -> list[TrainedRun]:
    """Train every run of a recipe on a benchmark's ID classes; killed runs resume, finished ones are kept.

    Parameters
    ----------
    recipe : a training recipe, its name, or the path of its TOML file.
    benchmark : a manifest, its name, or its folder.
    out : folder of the models: ``out/<benchmark>/<run>/``, for ``trained:`` in `evaluate`.
    method : in place of the recipe's: ``NAME[parameter=value]``, ``MODULE:NAME``, or an instance.
    network : by default the recipe's; see `build_network`.
    seeds : one run each; by default the recipe's seed, else 0.
    optimizers : names in the recipe, by default all.
    epochs : by default the recipe's; the schedule is scaled.
    images : number of ID train images, equally many per class by the benchmark's draw; all by default.
        Validation images and negatives are not reduced.
    steps, batch : steps in an epoch and images in a batch (either: one epoch, without ``epochs``), to try
        whether a training works; the model is marked as a trial (`TrainingRecipe.as_trial`).
    sweep : parameter of the method -> values; every combination is trained. `train_sweep` also chooses one.
    start : weights to start from in place of the recipe's, see `starting.open_start`.
    allow_leaks : whether outliers may show ID classes or be ID images, see `load_training_data`.
    roots, packed : as of `loaders.UnknownDetectionSet`.
    device, precision : as in `choose_machine`.
    command : stored with the models.
    callbacks : called with (run, row of the history) after every epoch; see `fitting.parse_log`.
    progress : as of `evaluate`.
    notify : called with each line of a message (the recipe, the table of costs);
        by default lines are printed on stderr if progress is shown.
    trust_model : needed for a TOML file whose method or network is ``MODULE:NAME``.

    Raises
    ------
    SplitsError : unknown names, missing images or device, or a folder with other runs.
    """
    progress = choose_progress(progress)
    notify = notify or choose_messages(progress)
    given = {"epochs": epochs, "images": images, "steps": steps, "batch": batch}
    check_counts(where="train", **{name: count for name, count in given.items() if count is not None})
    recipe = load_recipe(recipe, trust_model=trust_model) if isinstance(recipe, str) else recipe
    recipe = recipe if method is None else recipe.with_method(method)
    recipe = recipe if start is None else with_start(recipe, start)
    trial = steps is not None or batch is not None
    epochs = 1 if epochs is None and trial else epochs
    recipe = recipe if epochs is None else recipe.with_epochs(epochs)
    recipe = recipe if images is None else recipe.with_images(images)
    recipe = recipe.as_trial(steps, batch) if trial else recipe
    recipes = [recipe] if sweep is None else recipe.swept(sweep)
    chosen: dict[str, Any] = {"network": network, "optimizers": optimizers, "seeds": seeds}
    runs = [run for each in recipes for run in plan_runs(each, **chosen)]
    outliers, machine = recipe.build_method().outliers, choose_machine(device, precision)
    data = load_training_data(
        benchmark,
        roots=roots,
        packed=packed,
        negatives=outliers != "none",
        images=recipe.images,
        val_negatives=recipe.select == "gamma",
        resize=recipe.resize,
        margin=recipe.margin,
        allow_leaks=allow_leaks,
        progress=progress,
    )
    if machine.ranks.first:
        for line in _announcement(recipe):
            notify(line)
    options: dict[str, Any] = {"command": command, "start": start, "callbacks": callbacks}
    return train_runs(runs, data, Path(out), machine, **options, progress=progress, notify=notify)


def _announcement(recipe: TrainingRecipe) -> list[str]:
    """Return the recipe, and every departure from the paper or the recipe, as lines."""
    title = f"{recipe.name}: {recipe.title}{f' ({recipe.paper})' if recipe.paper else ''}"
    return [title, *(f"  differs: {difference}" for difference in recipe.differs)]


def plan_runs(
    recipe: TrainingRecipe,
    *,
    network: str | None = None,
    optimizers: Sequence[str] = (),
    seeds: Sequence[int] | None = None,
) -> list[Run]:
    """Return the runs of a recipe: every optimizer (all by default) x every seed."""
    for name in optimizers:
        if name not in recipe.optimizer:
            raise unknown("optimizer", name, recipe.optimizer, where=f"training recipe {recipe.name}")
    names = list(optimizers) or list(recipe.optimizer)
    network = recipe.network if network is None else network
    seeds = [recipe.seed or 0] if seeds is None else seeds
    return [Run(recipe, network, name, seed) for name in names for seed in seeds]


def train_runs(
    runs: Sequence[Run],
    data: TrainingData,
    out: Path,
    machine: Machine,
    *,
    command: str | None = None,
    start: str | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    notify: Callable[[str], None] = lambda text: None,
) -> list[TrainedRun]:
    """Train every run into ``out/<benchmark>/<run>/`` and return them in order.

    A finished run is not trained again; an interrupted one continues after its last complete epoch.

    Parameters
    ----------
    command : recorded with each model.
    start : weights to start from in place of the recipe's, see `starting.open_start`.
    """
    on_device, ranks = DeviceData.from_data(data, machine.device), machine.ranks
    if not ranks.first:
        callbacks, progress, notify = (), None, _ignore
    for run in runs:
        _check_selection(run.recipe, on_device)
    runs_folder = out / str(data.benchmark["name"])
    trained: list[TrainedRun] = []
    for number, run in enumerate(runs):
        folder = runs_folder / run.name
        with ExitStack() as stack:
            with ranks.all_ranks("opening the folder of a run"):
                if ranks.first:
                    stack.enter_context(files.locked(folder, busy="another training is writing here"))
                    files.clear_parts(folder)
            stack.enter_context(reproducible(machine.device))
            method = run.recipe.build_method()
            network = data.describe_network(run.network, background=method.background)
            code = _user_code(run)  # imported before a model to start from may name it
            begin = open_start(run, network, data, runs_folder, start)
            request = {
                "recipe": run.recipe.as_dict(),
                "network": network,
                "outliers": method.outliers,
                **({} if method.revision == 1 else {"revision": method.revision}),
                "optimizer": run.optimizer,
                "seed": run.seed,
                "benchmark": dict(data.benchmark),
                "classes": list(data.classes),
                "input": {
                    "mean": list(data.normalise.mean),
                    "std": list(data.normalise.std),
                    **({"resize": run.recipe.resize.geometry()} if run.recipe.resize else {}),
                },
                "start": None if begin is None else begin.record,
                "machine": machine.as_dict(),
                **code,
            }
            if (folder / METADATA).exists():
                del request["machine"]  # a finished model may come from any machine
                trained.append(TrainedRun(folder, same_request(read_metadata(folder), request, folder), 0.0))
                notify(f"{run.name}: trained already")
                continue
            if begin is None and not any(BACKBONE in part.reaches for part in method.parts.values()):
                notify(f"{run.name}: {method.name} trains heads alone, and no --start is given")
            trainer = Trainer(run, on_device, machine, begin)
            if begin is not None:
                notify(f"{run.name}: {begin.describe(new_classifier=trainer.new_classifier)}")
            if not any(t.seconds for t in trained):
                trainer.announce = partial(announce_cost, trainer, runs[number:], runs_folder, notify)
            trained.append(fit(trainer, folder, request, command, callbacks, progress or Silent(), notify))
    return trained


def _user_code(run: Run) -> dict[str, list[str]]:
    """Return the identities of the files that a method or network ``MODULE:NAME`` comes from, if any."""
    names = named_code(run.network, run.recipe.method.name)
    for name in names:
        import_object(name, where=run.name)
    return {"code": [file_identity(name) for name in names]} if names else {}


def _ignore(text: str) -> None:
    """Ignore a message, because rank 0 shows the same messages."""


def _check_selection(recipe: TrainingRecipe, data: DeviceData) -> None:
    missing = {
        "last": False,
        "val-loss": data.val is None,
        "gamma": data.val is None or data.val_negatives is None,
    }[recipe.select]
    if missing:
        raise DataError(
            f"training recipe {recipe.name!r} selects the epoch by {recipe.select}, but the benchmark has "
            f"no {'ID' if data.val is None else 'external'} validation images",
            where=str(data.facts.benchmark["name"]),
            hint="take a recipe with select = 'last'",
        )
