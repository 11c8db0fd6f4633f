"""The command ``unknown-eval run``: evaluate models on a benchmark, with any detectors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.progress import OnStderr
from wordnet_splits.base.terminal.options import (
    AllowMissing,
    BenchmarkOption,
    Cut,
    Device,
    Json,
    PackedOption,
    RootOptions,
    refuse_options,
)
from wordnet_splits.base.terminal.output import DONE, LEFT_OUT, print_result, to_stderr, to_stdout
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.roots import parse_roots

from ..detectors import get_preset, parse_detectors
from ..detectors.parsing import PRESET, join_left_out
from ..evaluation.array_evaluation import evaluate_arrays
from ..evaluation.run_evaluation import require_clusters
from ..models.trial import DEADLINE
from ..results.metadata import DISJOINT, MetricOptions, fingerprints_of, metric_options
from ..results.printing import (
    STORE,
    BatchSize,
    Deadline,
    MeanOption,
    Over,
    StdOption,
    TrustModel,
    UserMetrics,
    import_metrics,
    parse_share,
    print_tables,
)
from ..results.results import Results, refuse_other_results
from ..results.sentences import lines_below
from ..results.tables import layout_of, tables
from .main import RUN, app

MAX_NAME_LENGTH = 100
SHOWN = {"composition", "missing", "runs", "notes", "left_out", "metrics", "foreign", "clusters"}
"""Fields of ``about.json`` that ``--json`` prints."""
WITHOUT_ARRAYS = (
    *("model", "weights", "runs", "head", "transform", "mean", "std", "num_classes"),
    *("names", "language", "negatives", "template", "root", "packed", "store", "shard", "merge", "keep"),
    *("batch_size", "workers", "device", "trust_model"),
)
"""Options of the command that change nothing where arrays are evaluated."""
OUT = Path("build/results")


@app.command(
    "run",
    heading="Evaluate",
    examples=[
        f"{RUN} --shard 1/1",
        f"{RUN} --merge",
        f"{RUN} --detectors msp,energy,knn[k=10] --bootstrap 100 --json",
    ],
)
def run_evaluation(
    context: typer.Context,
    benchmark: BenchmarkOption,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A file (.onnx, .pt2, .ts, .pt), timm:NAME, torchvision:NAME, hf:NAME, MODULE:NAME, "
            "demo:digits (a small trained network), or trained:FOLDER (a model of `train`, or a folder or "
            "pattern of several, whose seeds are averaged); repeatable."
        ),
    ] = None,
    arrays: Annotated[
        Path | None,
        typer.Option(
            help="In place of models: a folder with their logits or features, a file for each set "
            "(GROUP.npz, .npy, .parquet, .safetensors), matched by image id."
        ),
    ] = None,
    detectors: Annotated[
        str, typer.Option(help="NAME[parameter=value,...], preset:NAME or MODULE:NAME, joined by commas.")
    ] = "preset:simple",
    weights: Annotated[
        list[str] | None,
        typer.Option(help="A file of weights (FILE#KEY), or the publisher's name; repeatable."),
    ] = None,
    model_id: Annotated[
        str | None, typer.Option("--model-id", help="Name of a function, a module, a file or arrays.")
    ] = None,
    runs: Annotated[
        bool, typer.Option("--runs", help="The models are runs of one, to be averaged: seeds, optimizers.")
    ] = False,
    head: Annotated[str | None, typer.Option(help="Name of the classifier head; found by default.")] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            help="Which column is which class: a text file of a class a line, a source's name, or 'identity' "
            "(column k is class k)."
        ),
    ] = None,
    transform: Annotated[
        str | None,
        typer.Option(
            help="In place of the model's transform: resize-N, resize-N-crop-M, none, or MODULE:NAME, a "
            "function of a PIL image."
        ),
    ] = None,
    mean: MeanOption = None,
    std: StdOption = None,
    num_classes: Annotated[
        int | None,
        typer.Option(min=1, help="Number of outputs, for names that make any number, as timm:resnet18."),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="Names of ID classes for clip: and open_clip: models: one a line in label order, or a table "
            "with columns class_id and name."
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            help="Language of names that --names does not give: a code such as fr, or a WN-LMF file."
        ),
    ] = None,
    negatives: Annotated[
        Path | None, typer.Option(help="Negative words of clip: and open_clip: models, one a line.")
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(
            help="Sentence with {} for the name of a class, for clip: and open_clip: models; repeatable."
        ),
    ] = None,
    restrict: Annotated[
        str, typer.Option(help="Softmax over the benchmark's columns (columns), or over all (full).")
    ] = "columns",
    background: Annotated[
        str | None, typer.Option(help="Column of a background class, or 'last'; dropped after softmax.")
    ] = None,
    root: RootOptions = None,
    packed: PackedOption = None,
    group: Annotated[
        list[str] | None, typer.Option(help="An OOD set to evaluate, all by default; repeatable.")
    ] = None,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep", help="Choose parameters that are not given on validation images, for each run."
        ),
    ] = False,
    disjoint: Annotated[
        bool,
        typer.Option(
            "--disjoint",
            help="With --sweep: without OOD validation classes in subtrees (of the default cut) of test "
            "classes.",
        ),
    ] = False,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Replicates behind intervals; 1000 is usual, 0 for none.")
    ] = 0,
    seed_boot: Annotated[int, typer.Option("--seed-boot", help="Seed of the bootstrap.")] = 0,
    over: Over = "images",
    cut: Cut = None,
    metric: UserMetrics = None,
    prevalence: Annotated[
        list[float] | None, typer.Option(help="Share of OOD at which AURC is computed too; 0.5 by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; by default build/results/BENCHMARK/MODEL.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace results of other models in that folder.")
    ] = False,
    store: Annotated[Path, typer.Option(help="Folder of activations, shared by all benchmarks.")] = STORE,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Compute share I of N of the activations into STORE/parts, and stop; --merge goes on.",
        ),
    ] = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="First merge the parts of all runs with --shard into STORE.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="With --merge: keep the parts, which are removed by default.")
    ] = False,
    batch_size: BatchSize = None,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that read images; 0 is fastest for packed ones.")
    ] = 0,
    device: Device = None,
    allow_missing: AllowMissing = False,
    trust_model: TrustModel = False,
    deadline: Deadline = DEADLINE,
    layout: Annotated[
        str | None,
        typer.Option(help="Layout of the printed table; by default that of the benchmark's paper."),
    ] = None,
    json: Json = False,
) -> int:
    """Evaluate models with detectors on a benchmark: results, scores, and a table as in its paper."""
    if disjoint and not sweep:
        raise SplitsError("only applies with --sweep", where="--disjoint")
    manifest = load_manifest(benchmark)
    if layout is not None:
        layout_of(manifest.name, layout)
    configured = parse_detectors(detectors, benchmark=manifest.name)
    import_metrics(metric)
    for share in prevalence or ():
        if not 0 < share < 1:
            raise SplitsError(f"{share:g} is not a share between 0 and 1", where="--prevalence")
    _announce_absent(detectors)
    metrics = metric_options(bootstrap, seed_boot, prevalence or MetricOptions().prevalences, over, cut)
    chosen_sweep = DISJOINT if disjoint else sweep
    require_clusters(manifest, group, metrics, sweep=chosen_sweep)  # before a model is loaded
    if arrays is not None:
        refuse_options(context, WITHOUT_ARRAYS, "changes nothing with --arrays")
        results = evaluate_arrays(
            arrays,
            configured,
            benchmark=manifest,
            groups=group,
            allow_missing=allow_missing,
            mapping=mapping,
            restrict=restrict,
            background=background,
            model=model_id or arrays.resolve().name,
            sweep=chosen_sweep,
            bootstrap=bootstrap,
            seed_boot=seed_boot,
            over=over,
            cut=cut,
            prevalences=metrics.prevalences,
            progress=OnStderr(),
        )
        folder = out or OUT / manifest.name / folder_name(results.about.models)
        _print_results(results, folder, results.write(folder, overwrite=overwrite), layout, json=json)
        return LEFT_OUT if results.about.left_out else DONE
    need("torch", "torch", where="unknown-eval run")
    from ..evaluation.model_evaluation import EvaluationOptions, evaluate_models, extract_share
    from ..extraction.array_jobs import merge_parts
    from ..extraction.outputs import Store
    from ..models.loading import open_models
    from ..models.reproducibility import current_ranks

    zero_shot = {"rename": names, "language": language, "negatives": negatives, "templates": template}
    job = None if shard is None else parse_share(shard)
    if not merge:
        refuse_options(context, ("keep",), "only applies with --merge")
    if job is not None:
        refuse_options(context, ("merge",), "does not apply with --shard")
    models = open_models(
        model or (),
        weights or (),
        model_id=model_id,
        runs=runs,
        head=head,
        device=device,
        trust_model=trust_model,
        deadline=deadline,
        restrict=restrict,
        background=background,
        mapping=mapping,
        mean=mean,
        std=std,
        options={
            **({} if num_classes is None else {"num_classes": num_classes}),
            **_model_options(model or (), manifest, **zero_shot),
        },
    )
    folder = out or OUT / manifest.name / folder_name(models)
    if not overwrite and job is None:
        keys = {(name, run.key) for name, of_model in models.items() for run in of_model}
        refuse_other_results(folder, manifest.name, fingerprints_of(manifest), keys)
    options = EvaluationOptions(
        detectors=configured,
        groups=group,
        sweep=chosen_sweep,
        metrics=metrics,
        transform=transform,
        roots=parse_roots(root or [], manifest.declarations),
        packed=packed,
        allow_missing=allow_missing,
        store=store,
        batch_size=batch_size,
        workers=workers,
        progress=OnStderr(),
    )
    if job is not None:
        part = extract_share(models, manifest, options, Store(store), *job)
        if current_ranks().first:
            text = f"{shard}: {part.shards:,} shards, {part.images:,} forward passes in {part.folder}"
            print_result({"shard": shard, **part.as_dict()}, json, lambda: to_stdout(text))
        return DONE
    if merge:
        with current_ranks().all_ranks("the merge"):
            if current_ranks().first:
                merged = merge_parts(Store(store), keep=keep)
                to_stderr(f"merged {merged.parts} parts, {merged.shards:,} shards, in {store}")
    results = evaluate_models(models, manifest, options)
    if current_ranks().first:  # once, whatever the number of processes
        _print_results(results, folder, results.write(folder, overwrite=overwrite), layout, json=json)
    return LEFT_OUT if results.about.left_out else DONE


def _model_options(models: Sequence[str], manifest: Manifest, **options: Any) -> dict[str, Any]:
    """Return the options of the models; zero-shot ones get the benchmark's ID classes as names."""
    zero_shot = [model for model in models if model.partition(":")[0] in ("clip", "open_clip")]
    if not zero_shot and any(options.values()):
        raise SplitsError(
            "--names, --language, --negatives and --template are for zero-shot models",
            hint="as --model clip:openai/clip-vit-base-patch16",
        )
    if zero_shot and len(zero_shot) < len(models):
        raise SplitsError(
            "zero-shot models and others have different options", hint="evaluate them one by one"
        )
    options["names"] = manifest if zero_shot else None
    return {name: value for name, value in options.items() if value is not None}


def folder_name(models: Iterable[str]) -> str:
    """Return the name of the folder for results of these models."""
    return re.sub(r"[^A-Za-z0-9_.+@=-]+", "-", "+".join(models)).strip("-.")[:MAX_NAME_LENGTH] or "model"


def _announce_absent(detectors: str) -> None:
    """Name the detectors of a preset's paper that are not built yet."""
    for name in detectors.split(","):
        if name.strip().startswith(PRESET):
            absent = get_preset(name.strip().removeprefix(PRESET)).absent
            if absent:
                to_stderr(f"{name.strip()}: not built yet and left out: {', '.join(absent)}")


def _print_results(
    results: Results, folder: Path, paths: Sequence[Path], layout: str | None, *, json: bool
) -> None:
    paper_tables, about = tables(results, layout), results.about
    result = {
        "benchmark": about.benchmark,
        "out": str(folder),
        "files": [str(path) for path in paths],
        "models": about.models,
        **about.model_dump(mode="json", include=SHOWN),
        "tables": [table.as_dict() for table in paper_tables],
    }

    print_result(result, json, lambda: print_tables(paper_tables, lines_below(results)))
    for note in (*join_left_out(about.notes), *about.left_out, *about.foreign):
        to_stderr(f"note: {note}")
    to_stderr(f"results in {folder}")
