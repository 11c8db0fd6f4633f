"""The command ``unknown-eval run``: one or several models through a benchmark, with any detectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.cli.options import AllowMissing, Json, Packed, RootOptions, parse_roots
from wordnet_splits.cli.output import DONE, LEFT_OUT, print_json, print_table, say, show
from wordnet_splits.errors import SourceError, SplitsError
from wordnet_splits.lazy import need
from wordnet_splits.manifest import Manifest, load_manifest
from wordnet_splits.progress import OnStderr

from ..detectors import Chosen, parse_detectors, preset
from ..detectors.choosing import PRESET
from ..evaluation.evaluate import evaluate
from ..evaluation.measure import Options
from ..evaluation.results import Results
from ..evaluation.selection import Selection
from ..evaluation.tables import Table, composition_lines, layout_of, summary_lines, tables

if TYPE_CHECKING:
    from ..activations.on_benchmark import Images
    from ..model import Model

OUT, STORE = Path("build/results"), Path("build/activations")


def run(
    benchmark: Annotated[str, typer.Option(help="A frozen benchmark, or the folder of a manifest.")],
    model: Annotated[
        list[str],
        typer.Option(
            help="timm:NAME, torchvision:NAME, hf:NAME, exported:FILE, MODULE:NAME, or trained:FOLDER (a "
            "model of `train`, or a folder or pattern of several); repeatable, one run each."
        ),
    ],
    detectors: Annotated[
        str, typer.Option(help="NAME[parameter=value,...], preset:NAME or MODULE:NAME, joined by commas.")
    ] = "preset:simple",
    weights: Annotated[
        list[str] | None, typer.Option(help="A file of weights (or the publisher's name); repeatable.")
    ] = None,
    model_id: Annotated[
        str | None,
        typer.Option("--model-id", help="Name of a model that is a function."),
    ] = None,
    head: Annotated[str | None, typer.Option(help="Name of the classifier head; found by default.")] = None,
    mapping: Annotated[
        str | None,
        typer.Option(help="Which column is which class: a file, a source's name, or 'identity'."),
    ] = None,
    restrict: Annotated[
        str, typer.Option(help="Softmax over the benchmark's columns, or over all: columns, full.")
    ] = "columns",
    background: Annotated[
        str | None, typer.Option(help="Column of a background class, or 'last'; dropped after softmax.")
    ] = None,
    root: RootOptions = None,
    packed: Packed = None,
    group: Annotated[
        list[str] | None, typer.Option(help="An OOD set to evaluate, of all by default; repeatable.")
    ] = None,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="Choose parameters not given on validation images, for each model."),
    ] = False,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates behind intervals; 1000 is usual, 0 for none.")
    ] = 0,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    prevalence: Annotated[
        list[float] | None, typer.Option(help="Share of OOD at which AURC is computed too; 0.5 by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; by default build/results/NAME.")
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder of activations, shared by all benchmarks.")] = STORE,
    batch_size: Annotated[int, typer.Option(min=1, help="Images of a forward pass.")] = 128,
    workers: Annotated[int, typer.Option(min=0, help="Processes that read images.")] = 0,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1; by default a GPU if there is one.")
    ] = None,
    allow_missing: AllowMissing = False,
    trust_model: Annotated[
        bool, typer.Option("--trust-model", help="Load an exported program, which may run code.")
    ] = False,
    layout: Annotated[
        str | None, typer.Option(help="Table to print; by default the benchmark's paper's.")
    ] = None,
    json: Json = False,
) -> int:
    """Evaluate models with detectors on a benchmark: results, scores, and a table as in its paper."""
    manifest = load_manifest(benchmark)
    if layout is not None:
        layout_of(manifest.name, layout)
    asked = Asked(
        manifest=manifest,
        benchmark=benchmark,
        detectors=parse_detectors(detectors, benchmark=manifest.name),
        options=_options(bootstrap, seed_boot, prevalence),
        groups=group,
        sweep=sweep,
        allow_missing=allow_missing,
    )
    _say_absent(detectors)
    need("torch", "torch", where="unknown-eval run")
    from ..activations.on_benchmark import Images
    from ..model import open_models

    images = Images(benchmark, parse_roots(root or []), packed, allow_missing)
    models = open_models(
        model,
        weights or (),
        model_id=model_id,
        head=head,
        device=device,
        trust_model=trust_model,
        restrict=restrict,
        background=background,
        mapping=mapping,
    )
    results = put_through(asked, models, images, store=store, batch_size=batch_size, workers=workers)
    folder = out or OUT / manifest.name
    return _report(results, folder, layout, left_out=images.left_out, json=json)


@dataclass(frozen=True)
class Asked:
    """What is to be evaluated on what."""

    manifest: Manifest
    benchmark: str
    detectors: Sequence[Chosen]
    options: Options
    groups: Sequence[str] | None
    sweep: bool
    allow_missing: bool


def put_through(
    asked: Asked, models: Sequence[Model], images: Images, *, store: Path, batch_size: int, workers: int
) -> Results:
    """Extract what the store lacks and evaluate; sets of which no image is there are left out, and named."""
    from ..activations.on_benchmark import model_run
    from ..activations.store import Store

    selection = Selection.of(asked.manifest, asked.groups)
    held = {name: len(opened) for name, opened in images.test(list(selection.test)).items()}
    if asked.allow_missing:
        unread = [name for name, role in selection.test.items() if role == "id" and not held[name]]
        if unread:
            raise SourceError("no ID image is there", where=unread[0], hint=images.left_out[0])
    progress = OnStderr()
    runs = [
        model_run(
            one,
            asked.manifest,
            images,
            Store(store),
            batch_size=batch_size,
            workers=workers,
            progress=progress,
        )
        for one in models
    ]
    return evaluate(
        asked.manifest,
        runs,
        asked.detectors,
        options=asked.options,
        sweep=asked.sweep,
        groups=[name for name in selection.test if held[name]],
        notes=images.left_out,
        progress=progress,
    )


def _options(bootstrap: int, seed: int, prevalences: Sequence[float] | None) -> Options:
    for share in prevalences or ():
        if not 0 < share < 1:
            raise SplitsError(f"{share:g} is no share between 0 and 1", where="--prevalence")
    defaults = Options()
    return Options(
        replicates=bootstrap, seed=seed, prevalences=tuple(prevalences or ()) or defaults.prevalences
    )


def _say_absent(detectors: str) -> None:
    """Say which detectors of a preset's paper are not built yet."""
    for name in detectors.split(","):
        if name.strip().startswith(PRESET):
            chosen = preset(name.strip().removeprefix(PRESET))
            if chosen.absent:
                say(f"{name.strip()}: not built yet and left out: {', '.join(chosen.absent)}")


def _report(
    results: Results, folder: Path, layout: str | None, *, left_out: Sequence[str], json: bool
) -> int:
    """Write the results and print their tables, once, whatever the number of processes."""
    from ..model.ranks import current_ranks

    if not current_ranks().first:
        return DONE
    files = results.write(folder)
    made = tables(results, layout)
    notes = list(results.about["notes"])
    if json:
        print_json(
            {
                "benchmark": results.about["benchmark"],
                "out": str(folder),
                "files": [str(file) for file in files],
                "models": results.about["models"],
                "composition": results.about["composition"],
                "missing": results.about["missing"],
                "notes": notes,
                "left_out": list(left_out),
                "tables": [table.as_dict() for table in made],
            }
        )
    else:
        print_tables(made)
        show()
        for line in [*composition_lines(results), *summary_lines(results)]:
            show(line)
    for note in notes:
        say(f"note: {note}")
    say(f"results in {folder}")
    return LEFT_OUT if left_out else DONE


def print_tables(made: Sequence[Table]) -> None:
    """Print tables, each below its title."""
    for number, table in enumerate(made):
        show(("\n" if number else "") + table.title)
        print_table(table.columns, table.rows, right=table.columns[1:])
        for note in table.notes:
            show(note)
