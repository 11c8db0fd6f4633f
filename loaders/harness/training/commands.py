"""Commands of training: train, recipes, audit-method."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.terminal.options import (
    BenchmarkOption,
    Device,
    Json,
    PackedOption,
    RootOptions,
)
from wordnet_splits.base.terminal.output import (
    DONE,
    NEGATIVE,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)
from wordnet_splits.benchmark.manifest.loading import read_declarations
from wordnet_splits.benchmark.resolve import find_manifest
from wordnet_splits.datasets.sources.roots import parse_roots

from ..cli.main import TRAIN, app
from ..results.printing import TrustModel

if TYPE_CHECKING:
    from .audit import MethodAudit
    from .fitting import TrainedRun
    from .parameter_sweep import TrainingSweep
    from .recipe import TrainingRecipe

MAX_SEEDS = 1000
ALL_METHODS = "all"
NEED_A_FOLDER = frozenset({"augmented-copies"})
"""Methods that need a folder of images to be audited."""


@app.command("train", heading="Train", examples=[TRAIN, f"{TRAIN} --seeds 0-1 --device cpu"])
def train(
    benchmark: BenchmarkOption,
    recipe: Annotated[str, typer.Option(help="A training recipe (see `list recipes`), or a TOML file.")],
    out: Annotated[Path, typer.Option(help="Folder of the models, with a folder for each run.")],
    method: Annotated[
        str | None,
        typer.Option(help="Method in place of the recipe's: NAME[parameter=value], MODULE:NAME."),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(help="In place of the recipe's: a name, timm:NAME, torchvision:NAME, MODULE:NAME."),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="Seeds, as in 0, 0-4 or 0,2,5-7; by default the recipe's seed, else 0."),
    ] = None,
    optimizers: Annotated[str, typer.Option(help="Optimizers of the recipe, as in adam,sgd.")] = "all",
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of epochs; the recipe's schedule is scaled, and the model records it."
        ),
    ] = None,
    images: Annotated[
        int | None,
        typer.Option(min=1, help="Number of ID train images, equally many of each class; all by default."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="Trial: steps in an epoch (and one epoch, without --epochs); the model is marked."
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1, help="Trial: images in a batch (and one epoch, without --epochs); the model is marked."
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=a,b,c",
            help="Values of a parameter of the method, each trained; the one of least AURC on ID val pooled "
            "with external val (misclassified and external images are errors; ID val alone if there is no "
            "external val) is chosen. May be repeated: every combination.",
        ),
    ] = None,
    sweep_by: Annotated[
        str | None,
        typer.Option(
            metavar="DETECTOR", help="With --sweep: detector whose confidence is ranked, msp by default."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Weights to start from: torchvision:NAME/WEIGHTS, timm:NAME, a weights file, "
            "trained:FOLDER, a series of runs in --out, or random; by default the recipe's."
        ),
    ] = None,
    log: Annotated[
        list[str] | None, typer.Option(help="tensorboard:FOLDER or wandb:PROJECT; may be repeated.")
    ] = None,
    allow_leaks: Annotated[
        bool, typer.Option("--allow-leaks", help="Train on outliers with classes or images of the ID set.")
    ] = False,
    root: RootOptions = None,
    packed: PackedOption = None,
    device: Device = None,
    precision: Annotated[str, typer.Option(help="auto, float32, bf16 or fp16.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads; equal bytes need equal threads.")
    ] = None,
    trust_model: TrustModel = False,
    json: Json = False,
) -> int:
    """Train models of a benchmark's ID classes; killed runs resume, finished ones are kept."""
    torch = need("torch", "torch", where="unknown-eval train")
    from wordnet_splits.base.progress import OnStderr

    from . import train_recipe, train_sweep
    from .fitting import parse_log
    from .parameter_sweep import parse_sweep

    if threads:
        torch.set_num_threads(threads)
    values = parse_sweep(sweep or ())
    if sweep_by and not values:
        raise SplitsError("only applies with --sweep", where="--sweep-by")
    options: dict[str, Any] = {
        "method": method,
        "network": network,
        "seeds": None if seeds is None else parse_seeds(seeds),
        "optimizers": [] if optimizers == "all" else [name.strip() for name in optimizers.split(",")],
        "epochs": epochs,
        "images": images,
        "steps": steps,
        "batch": batch,
        "start": start,
        "allow_leaks": allow_leaks,
        "callbacks": [parse_log(text) for text in log or ()],
        "roots": parse_roots(root or [], read_declarations(find_manifest(benchmark))),
        "packed": packed,
        "device": device,
        "precision": precision,
        "command": _command(),
        "progress": OnStderr(),
        "notify": to_stderr,
        "trust_model": trust_model,
    }
    swept = (
        train_sweep(recipe, benchmark, out, values, detector=sweep_by or "msp", **options) if values else None
    )
    trained = train_recipe(recipe, benchmark, out, **options) if swept is None else swept.runs
    rows = [_row(t) for t in trained]
    folders = sorted({str(t.folder.parent) for t in trained})
    result = {"recipe": trained[0].metadata["recipe"], "runs": rows}
    if swept is not None:
        recipe_of = {t.metadata["series"]: t.metadata["recipe"] for t in trained}
        result["recipe"] = recipe_of[swept.chosen["series"]]
        facts = {"criterion": swept.criterion, "file": str(swept.file), "chosen": swept.chosen["series"]}
        result["sweep"] = {**facts, "rows": swept.rows}
    print_result(result, json, lambda: _print_trained(rows, folders, swept))
    return DONE


def _print_trained(rows: list[dict[str, Any]], folders: list[str], swept: TrainingSweep | None) -> None:
    _print_runs(rows, folders)
    if swept is not None:
        to_stdout()
        first, *columns = (name for name in swept.chosen if name != "criterion")
        cells = [[*(row[c] for c in columns[:-1]), "*" * row["chosen"], row[first]] for row in swept.rows]
        print_table((*columns, first), cells, right=("aurc",))
        print_lines([f"chosen: {swept.chosen['series']}, by {swept.criterion}", f"table in {swept.file}"])


def _command() -> str:
    return shlex.join(["unknown-eval", *sys.argv[1:]])


def _row(trained: TrainedRun) -> dict[str, Any]:
    metadata = trained.metadata
    return {
        "run": metadata["run"],
        "model": str(trained.folder),
        "seed": metadata["seed"],
        "optimizer": metadata["optimizer"],
        "epochs": metadata["epochs_trained"],
        "images": metadata["recipe"].get("images"),
        "selected_epoch": metadata["selected_epoch"],
        **{key: metadata["selected"].get(key) for key in ("loss", "val_loss", "val_accuracy", "gamma")},
        "seconds": trained.seconds,
        "differs": metadata["recipe"]["differs"],
    }


def _print_runs(rows: list[dict[str, Any]], folders: list[str]) -> None:
    numbers = ("images", "epochs", "selected_epoch", "loss", "val_loss", "val_accuracy", "gamma", "seconds")
    columns = [n for n in numbers if any(row[n] is not None for row in rows)]
    print_table(
        ("run", *(n.replace("_", " ") for n in columns)),
        [(row["run"], *(row[n] for n in columns)) for row in rows],
        right=tuple(n.replace("_", " ") for n in columns),
    )
    print_lines(f"models in {folder}" for folder in folders)


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of ``0-4`` or ``0,2,5-7``, in the order given, each once."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise SplitsError(
                f"seeds must be numbers, got {text!r}", where="--seeds", hint="as in 0-4 or 0,2,5-7"
            )
        low, high = int(first), int(last or first)
        if high < low or high - low >= MAX_SEEDS:
            raise SplitsError(
                f"a range must have up to {MAX_SEEDS} seeds, got {part.strip()!r}",
                where="--seeds",
                hint="as in 0-4",
            )
        seeds += [seed for seed in range(low, high + 1) if seed not in seeds]
    return seeds


@app.command(
    "list recipes",
    examples=[
        "unknown-eval list recipes",
        "unknown-eval list recipes --json",
    ],
)
def show_recipes(json: Json = False) -> int:
    """List the training recipes and the networks."""
    from .choices import NETWORKS
    from .recipe import load_recipe, recipe_names

    recipes = [load_recipe(name) for name in recipe_names()]
    networks = [{"name": name, "title": kind.title} for name, kind in NETWORKS.entries().items()]
    result = {"recipes": [r.as_dict() for r in recipes], "networks": networks}
    print_result(result, json, lambda: _print_recipes(recipes, networks))
    return DONE


@app.command(
    "audit-method",
    heading="Train",
    examples=[
        "unknown-eval audit-method logitnorm --json",
        "unknown-eval audit-method confbranch rotpred",
    ],
)
def audit_training_methods(
    methods: Annotated[
        list[str],
        typer.Argument(
            metavar="METHOD", help="Names, NAME[parameter=value] or MODULE:NAME; all: those shipped."
        ),
    ],
    json: Json = False,
) -> int:
    """Check what each part of a training method's loss trains; exit code 1 where a check fails."""
    need("torch", "torch", where="unknown-eval audit-method")
    from . import audit_method
    from .methods import get_method, list_methods

    shipped = [name for name in list_methods() if name not in NEED_A_FOLDER]
    names = dict.fromkeys(n for name in methods for n in (shipped if name == ALL_METHODS else [name]))
    parsed = [get_method(name, where="audit-method") for name in names]
    audits = [audit_method(method) for method in parsed]
    passed = all(audit.passed for audit in audits)
    several = {"passed": passed, "methods": [audit.as_dict() for audit in audits]}
    print_result(audits[0].as_dict() if len(audits) == 1 else several, json, lambda: _print_audits(audits))
    return DONE if passed else NEGATIVE


def _print_audits(audits: Sequence[MethodAudit]) -> None:
    several = len(audits) > 1
    rows = [
        {**row, "part": f"{a.method} {row['part']}" if several else row["part"]}
        for a in audits
        for row in a.rows()
    ]
    print_table(tuple(rows[0]), [tuple(row.values()) for row in rows])
    print_lines(
        f"{audit.method}, {f.part}, {f.check}: {f.note}" for audit in audits for f in audit.findings if f.note
    )


def _print_recipes(recipes: list[TrainingRecipe], networks: list[dict[str, str]]) -> None:
    print_table(
        ("recipe", "network", "method", "epochs", "title"),
        [(r.name, r.network, r.method.name, r.epochs, r.title) for r in recipes],
        right=("epochs",),
    )
    to_stdout()
    print_table(("network", "title"), [tuple(network.values()) for network in networks])
