"""Commands on detectors that are shipped: ``export-detector`` and ``score``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.files import check_outputs
from wordnet_splits.base.lazy import need
from wordnet_splits.base.parquet import check_table_file
from wordnet_splits.base.progress import OnStderr
from wordnet_splits.base.terminal.options import Device, Json, PackedOption, RootOptions
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    print_lines,
    print_result,
    print_table,
    to_stderr,
)
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.roots import parse_roots

from ..cli.main import app
from ..models.trial import DEADLINE
from ..results.printing import BatchSize, Deadline, MeanOption, StdOption, TrustModel
from ..results.results import Results

if TYPE_CHECKING:
    from . import ShippedDetector

FUTURE_IMAGES = 1000
"""ID images of the printed interval of false alarms."""
REFITTED = "results hold no fitted state: the detector was fitted again on the benchmark's images"
Model = Annotated[
    str | None, typer.Option(help="The network, as `run` takes it; by default the recorded network.")
]
Weights = Annotated[str | None, typer.Option(help="A file of its weights, or the publisher's name.")]
Head = Annotated[str | None, typer.Option(help="Name of its classifier head, as in the evaluation.")]
ModelId = Annotated[
    str | None, typer.Option("--model-id", help="Name of a model that is a function, as in the evaluation.")
]
TransformOption = Annotated[
    str | None,
    typer.Option(help="Transform of the evaluation, if it had one of its own: MODULE:NAME, or resize-32."),
]


@app.command(
    "export-detector",
    heading="Deploy",
    examples=[
        "unknown-eval export-detector results --detector msp --false-alarms 0.05",
        "unknown-eval export-detector results --detector msp --store build/activations --overwrite --json",
    ],
)
def export_detector(
    results: Annotated[Path, typer.Argument(help="A folder that `run` wrote.")],
    detector: Annotated[
        str, typer.Option(help="A detector, as the results call it, or MODULE:NAME for your own.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the detector.")] = Path("detector"),
    false_alarms: Annotated[
        float, typer.Option("--false-alarms", help="Greatest share of ID images that are flagged.")
    ] = 0.05,
    run: Annotated[
        int | None, typer.Option(help="Number of the network in the results; by default the first run.")
    ] = None,
    model: Model = None,
    weights: Weights = None,
    head: Head = None,
    model_id: ModelId = None,
    mapping: Annotated[
        str | None, typer.Option(help="Which column is which class, as in the evaluation.")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="Folder of the benchmark, if its name does not find it.")
    ] = None,
    transform: TransformOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    root: RootOptions = None,
    packed: PackedOption = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of activations of `run`, so that no image is read again.")
    ] = None,
    batch_size: BatchSize = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that read images.")] = 0,
    device: Device = None,
    trust_model: TrustModel = False,
    deadline: Deadline = DEADLINE,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a detector in that folder.")
    ] = False,
    json: Json = False,
) -> int:
    """Export a detector of results: fitted, with a threshold for a rate of false alarms, for `score`."""
    need("torch", "torch", where="unknown-eval export-detector")
    from .detector_folder import refuse_folder
    from .export import export_detector as export

    refuse_folder(out, overwrite=overwrite)
    stored = Results.read(results)
    manifest = load_manifest(benchmark or stored.about.benchmark)
    shipped = export(
        stored,
        detector,
        false_alarms=false_alarms,
        run=run,
        model=model,
        benchmark=manifest,
        transform=transform,
        roots=parse_roots(root or [], manifest.declarations),
        packed=packed,
        store=store,
        batch_size=batch_size,
        workers=workers,
        progress=OnStderr(),
        **_given(
            weights=weights, head=head, model_id=model_id, mapping=mapping, device=device, mean=mean, std=std
        ),
        trust_model=trust_model,
        deadline=deadline,
    )
    paths = shipped.write(out, overwrite=overwrite)
    guarantee = shipped.guarantee
    low, high = guarantee.rates()
    few, many = guarantee.counts(FUTURE_IMAGES)
    facts = {
        **shipped.description.calibration.model_dump(),
        "coverage": guarantee.coverage,
        "rate_lo": low,
        "rate_hi": high,
        "flagged_of_1000_lo": few,
        "flagged_of_1000_hi": many,
    }
    result = {
        "out": str(out),
        "files": [str(path) for path in paths],
        **_facts(shipped),
        "calibration": facts,
        "notes": shipped.notes,
    }
    subject = f"{shipped.description.detector} on {shipped.description.network.name}"
    promised = f"{guarantee.false_alarms:.2%} (asked: {guarantee.requested:.2%})"
    lines = (
        f"{subject}: flags images of confidence below {shipped.threshold:.6g}, "
        f"rank {guarantee.rank:,} of {guarantee.images:,} ID validation images",
        f"an ID image is flagged with a probability of at most {promised}",
        f"with 95% probability the rate of this detector is {low:.2%} to {high:.2%}, "
        f"and {few:,} to {many:,} of {FUTURE_IMAGES:,} ID images are flagged",
    )
    print_result(result, json, lambda: print_lines(lines))
    for note in (REFITTED, *shipped.notes):
        to_stderr(f"note: {note}")
    to_stderr(f"detector in {out}")
    return DONE


@app.command(
    "score",
    heading="Deploy",
    examples=[
        "unknown-eval score detector images",
        "unknown-eval score detector images --out scored.csv --json",
        "unknown-eval score detector images --fdr 0.1",
    ],
)
def score_images(
    detector: Annotated[Path, typer.Argument(help="A folder that `export-detector` wrote.")],
    images: Annotated[list[Path], typer.Argument(help="Images, or folders of images.")],
    model: Model = None,
    weights: Weights = None,
    head: Head = None,
    model_id: ModelId = None,
    transform: TransformOption = None,
    implementation: Annotated[
        str | None, typer.Option("--detector", help="MODULE:NAME of a custom detector.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write the table to: .csv or .parquet.")] = None,
    fdr: Annotated[
        float | None,
        typer.Option("--fdr", help="Greatest share of ID images among those flagged in this batch."),
    ] = None,
    dependent: Annotated[
        bool, typer.Option("--dependent", help="With --fdr: the images may depend, as a video's frames do.")
    ] = False,
    batch_size: BatchSize = None,
    device: Device = None,
    trust_model: TrustModel = False,
    deadline: Deadline = DEADLINE,
    json: Json = False,
) -> int:
    """Score images with an exported detector: confidence, p-value, and whether each is in-distribution."""
    need("torch", "torch", where="unknown-eval score")
    from .image_table import score_files
    from .shipped_detector import load_detector

    if out is not None:
        check_table_file(out)
        check_outputs(out, inputs=images)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        shipped = load_detector(
            detector,
            model,
            detector=implementation,
            transform=transform,
            **_given(weights=weights, head=head, model_id=model_id, device=device),
            trust_model=trust_model,
            deadline=deadline,
        )
    notes = [*(str(warning.message) for warning in caught), *shipped.notes]
    for note in notes:
        to_stderr(f"note: {note}")
    table = score_files(
        shipped, images, batch_size=batch_size, progress=OnStderr(), fdr=fdr, dependent=dependent
    )
    if len(table.problems) == len(table.scores):
        first, others = table.problems[0], len(table.problems) - 1
        problem = f"{first.problem}; nor can {others:,} more be scored" if others else str(first.problem)
        raise DataError(problem, where=first.image)
    if out is not None:
        table.write(out)
    scored = len(table.scores) - len(table.problems)
    counts = {"scored": scored, "flagged": table.flagged, "passed_over": table.passed_over}
    written: dict[str, Any] = {} if out is None else {"out": str(out)}
    if table.batch is not None:
        outliers, least = sum(bool(score.outlier) for score in table.scores), table.batch.least(scored)
        written["batch"] = {**vars(table.batch), "outliers": outliers, "least": least}
    result = {**_facts(shipped), **counts, "images": table.rows(), **written, "notes": notes}
    columns = table.schema.names if table.problems else table.schema.names[:-1]
    cells = [[row[name] for name in columns] for row in table.rows()]
    right = ("confidence", "p_value", "adjusted_p")
    print_result(result, json, None if out else lambda: print_table(columns, cells, right=right))
    if table.passed_over:
        more = f" and {len(table.passed_over) - 1:,} more" if len(table.passed_over) > 1 else ""
        to_stderr(f"note: passed over, not being images by name: {table.passed_over[0]}{more}")
    if table.problems:
        first = table.problems[0]
        to_stderr(f"note: {len(table.problems):,} not scored, the first {first.image}: {first.problem}")
    to_stderr(
        f"{table.flagged:,} of {scored:,} images are flagged; of ID images at most "
        f"{shipped.guarantee.false_alarms:.2%} are"
    )
    if table.batch is not None:
        known = "each ID image is" if dependent else "its ID images are"
        to_stderr(
            f"{outliers:,} images are outliers of this batch, of which on average at most {fdr:.2%} are ID, "
            f"if {known} exchangeable with the calibration images"
        )
        if least > 1:
            many = table.batch.images_for_one(scored)
            to_stderr(
                f"note: with {table.batch.images:,} calibration images, it takes {least:,} outliers in a "
                f"batch of {scored:,} to flag any; a single one takes at least {many:,} calibration images"
            )
    return LEFT_OUT if table.problems else DONE


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _facts(shipped: ShippedDetector) -> dict[str, Any]:
    description = shipped.description
    return {
        "detector": description.detector,
        "network": description.network.model_dump(),
        "benchmark": description.benchmark.model_dump(),
        "false_alarms": shipped.guarantee.false_alarms,
        "threshold": shipped.threshold,
    }
