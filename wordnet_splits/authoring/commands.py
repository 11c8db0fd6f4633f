"""Commands for a new benchmark: benchmark (from a folder), new (a recipe), sources inventory (image ids)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.terminal.options import (
    Declared,
    IdTable,
    Json,
    Language,
    RootOptions,
    Workers,
)
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_lines,
    print_result,
    to_stderr,
    to_stdout,
)
from wordnet_splits.benchmark.group_table import print_groups
from wordnet_splits.cli.main import app
from wordnet_splits.datasets.sources.roots import parse_roots

if TYPE_CHECKING:
    from wordnet_splits.authoring.new_recipe import NewRecipe

Sets = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SOURCE", help="SOURCE, SOURCE:CLASS,CLASS, SOURCE:N or SOURCE:MEASURE=VALUE[,N]; repeatable."
    ),
]
Tree = Annotated[
    Path | None,
    typer.Option(
        metavar="TREE.tsv",
        help="A hierarchy in place of WordNet, with the nodes.tsv next to it; copied next to the recipe.",
    ),
]
NoTrain = Annotated[
    bool, typer.Option("--no-train", help="ID has test images only, as a pretrained model needs no others.")
]

NOTES = (
    "N classes are drawn. MEASURE=VALUE is a threshold of the similarity to the nearest ID class: near\n"
    "classes are at or above it, far and external classes below (`audit thresholds` counts them), without\n"
    "relatives of ID classes: --near imagenet21k:mean=0.6,100 --far imagenet21k:mean=0.4,100."
)


@app.command(
    "new",
    heading="Make",
    examples=[
        "wordnet-splits new my-cifar --id cifar100:40 --near cifar100 --far svhn",
        "wordnet-splits new pets --id cifar100:hamster,mouse --near cifar100:mean=0.6 --far digits",
    ],
    notes=NOTES,
)
def new_recipe(
    name: Annotated[str, typer.Argument(help="Name of the benchmark; NAME.toml is written.")],
    id_: Annotated[
        str,
        typer.Option("--id", metavar="SOURCE", help="ID: SOURCE, SOURCE:CLASS,CLASS or SOURCE:N."),
    ],
    near: Sets = None,
    far: Sets = None,
    external: Sets = None,
    hierarchy: Tree = None,
    no_train: NoTrain = False,
    root: RootOptions = None,
    declared: Declared = None,
    out: Annotated[Path | None, typer.Option(help="The recipe to write; NAME.toml by default.")] = None,
    json: Json = False,
) -> int:
    """Write a commented recipe, and print its classes, images, evidence and overlaps."""
    from wordnet_splits.authoring.new_recipe import new_recipe
    from wordnet_splits.benchmark.recipe import declared_by
    from wordnet_splits.datasets.catalog.declarations import declare

    path = out or Path(f"{name}.toml")
    declare(*declared_by(declared).values())
    roots = parse_roots(root or [])
    recipe = new_recipe(
        name,
        path,
        known=id_,
        near=near or (),
        far=far or (),
        external=external or (),
        roots=roots,
        hierarchy=hierarchy,
        train=not no_train,
    )
    for note in recipe.notes:
        to_stderr(note)
    print_result(recipe, json, lambda: _print_recipe(recipe, root or []))
    return DONE


def _print_recipe(recipe: NewRecipe, roots: list[str]) -> None:
    print_groups([(recipe.name, recipe.groups, None)])
    to_stdout()
    for row in recipe.evidence:
        to_stdout(f"{row['source']}:{row['class_id']}: {row['evidence']}")
        to_stdout(f"  margin: {row['margin']}")
    print_lines([*recipe.overlaps, *recipe.left_out])
    flags = "".join(f" --root {text}" for text in roots)
    to_stdout(f"written: {recipe.out}; edit it, then: wordnet-splits build {recipe.out}{flags}")
    to_stdout()
    print_lines(map(str, recipe.verdict.lines))


@app.command(
    "benchmark",
    heading="Make",
    examples=[
        "wordnet-splits benchmark pics --known cifar100 --out made",
        "wordnet-splits benchmark pics --known cifar100:fox,camel --name wild --out wild --accept",
    ],
)
def make_folder_benchmark(
    folder: Annotated[
        Path, typer.Argument(help="Images in class folders, or with a dataset.toml.", file_okay=False)
    ],
    known: Annotated[
        str,
        typer.Option(metavar="LIST", help="ID: SOURCE, SOURCE:CLASS,CLASS, or a file of classes."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the recipe, the build and the pages.")],
    of: Annotated[
        str | None, typer.Option(help="The source of the classes in that file; by default FOLDER.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the benchmark; the folder's by default.")] = None,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Go on with unsure synsets, which are listed and stay unconfirmed."),
    ] = False,
    language: Language = "en",
    ids: IdTable = None,
    hierarchy: Tree = None,
    no_train: NoTrain = False,
    root: RootOptions = None,
    declared: Declared = None,
    workers: Workers = 1,
    json: Json = False,
) -> int:
    """Make a benchmark from a folder of images, and print the command of each step.

    Catalog, inventory, threshold, recipe, build, verification and pages. The threshold balances near and far.
    All files are written below --out, except a catalog and an inventory that a dataset.toml next to the
    images places there. A dataset.toml in another folder is given by --declared and copied to --out. The same
    command continues where it stopped; with unsure classes, it stops with exit code 3 without --accept or a
    terminal.
    """
    from wordnet_splits.authoring.folder_benchmark import make_benchmark
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.linking.asking import ask_on_terminal, is_interactive

    benchmark = make_benchmark(
        folder,
        out,
        known=known,
        of=of,
        name=name,
        accept=accept,
        ask=ask_on_terminal if is_interactive() and not accept else None,
        language=language,
        ids=ids,
        hierarchy=hierarchy,
        train=not no_train,
        roots=parse_roots(root or []),
        declared=declared,
        workers=workers,
        report=None if json else to_stdout,
        progress=OnStderr(),
    )
    print_result(benchmark, json)
    if benchmark.verified is None:
        return LEFT_OUT
    return DONE if benchmark.verified else NEGATIVE


@app.command(
    "sources inventory",
    examples=[
        "wordnet-splits sources inventory mypics --root mypics=pics",
        "wordnet-splits sources inventory mypics --root mypics=pics --workers 2 --json",
    ],
)
def make_dataset_inventory(
    source: Annotated[str, typer.Argument(help="A custom dataset, by its name in dataset.toml.")],
    root: RootOptions = None,
    declared: Declared = None,
    workers: Workers = 1,
    json: Json = False,
) -> int:
    """Freeze the image ids and digests of a custom dataset, next to its catalog.

    Draws are then made from the inventory, without the images, and changed images are detected.
    """
    from wordnet_splits.authoring.folder_dataset import make_inventory
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.recipe import declared_by

    roots = parse_roots(root or [], declared_by(declared))
    inventory = make_inventory(source, roots=roots, declared=declared, workers=workers, progress=OnStderr())
    if inventory.unexpected:
        names = ", ".join(list(inventory.unexpected)[:3])
        to_stderr(f"{sum(inventory.unexpected.values()):,} other files left out, such as {names}")
    print_result(inventory, json, lambda: to_stdout(inventory.sentence))
    return DONE
