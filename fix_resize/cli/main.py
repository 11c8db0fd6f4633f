"""The command ``fix-resize``: build, verify and audit sets of resized images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.progress import OnStderr
from wordnet_splits.base.terminal.options import (
    AllowMissing,
    Json,
    Local,
    RootOptions,
)
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_first,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
)
from wordnet_splits.base.terminal.runner import Program
from wordnet_splits.datasets.sources.roots import parse_roots

if TYPE_CHECKING:
    from fix_resize.auditing.measurements import SkippedImage
    from fix_resize.auditing.set_audit import PairedAudit, Report
    from fix_resize.pipeline.building import BuildResult
    from fix_resize.pipeline.verify import Verification

MAX_LINES: Final = 20
"""Images or problems listed on the terminal."""

SET_NOTE: Final = (
    "A SET is a dataset NAME[:SPLIT,SPLIT], a benchmark NAME:GROUP[:SPLIT], a folder with a manifest, packed "
    "store or output of build DIR[:GROUP[:SPLIT]], or any folder of images (or of Parquet with images)."
)


app: Final = Program(
    "fix-resize",
    "Resize images into small benchmarks without the artefacts that gave earlier ones away.",
    ["fix-resize build folder --root photographs --out fixed", "fix-resize verify fixed"],
)


@app.command(
    "build",
    examples=[
        "fix-resize build folder --root photographs --out fixed",
        "fix-resize build folder --root photographs --spec nearest --format parquet --out decimated",
    ],
)
def build_set(
    target: Annotated[
        str, typer.Argument(metavar="SET", help="lsun, tiny-imagenet, from-manifest or folder.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to build in; the same command continues it.")],
    benchmark: Annotated[
        str | None, typer.Argument(metavar="BENCHMARK", help="from-manifest: a name or a folder.")
    ] = None,
    root: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]DIR", help="Where a source's files are; repeatable.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="from-manifest: a group; repeatable. By default all with a resize view."),
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="from-manifest: train, val or test; repeatable.")
    ] = None,
    per_class: Annotated[
        int | None,
        typer.Option(min=1, help="lsun: images per scene, by default 400 (Kim et al.); CSI has 1000."),
    ] = None,
    local: Local = False,
    allow_missing: AllowMissing = False,
    spec: Annotated[
        str | None, typer.Option(help="Resize spec, such as fix-64; by default the group's view, else fix.")
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help="png: a tree of files. parquet: shards, as `datasets` reads them.")
    ] = "png",
    backend: Annotated[
        str, typer.Option(help="pillow, numba or numpy, with equal bytes; auto is numba if installed.")
    ] = "auto",
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="tcp://HOST:PORT", help="A Dask scheduler to use instead.")
    ] = None,
    shard_size: Annotated[int, typer.Option(min=1, help="Images per shard, the unit of work.")] = 1000,
    identify: Annotated[
        str, typer.Option(help="How to notice changed images: stat (size and time of files) or digest.")
    ] = "stat",
    json: Json = False,
) -> int:
    """Build a set of resized images, or continue one.

    lsun: LSUN-FIX, from LSUN's train databases. tiny-imagenet: TinyImageNet158-FIX, from ImageNet's train
    images. from-manifest: groups of any benchmark. folder: any folder of images, names kept.
    """
    import fix_resize

    result = fix_resize.build(
        target,
        out,
        benchmark=benchmark,
        roots=_roots(target, root or []),
        groups=group or (),
        splits=split or (),
        per_class=per_class,
        local=local,
        allow_missing=allow_missing,
        spec=spec,
        file_format=format_,
        backend=backend,
        workers=workers,
        scheduler=scheduler,
        shard_size=shard_size,
        identify=identify,
        progress=OnStderr(),
        notify=to_stderr,
    )
    print_result(_as_json(result), json, lambda: _print_build(result))
    return DONE if result.complete and not result.quarantined else LEFT_OUT


def _roots(target: str, options: Sequence[str]) -> dict[str, Path]:
    """Return roots by source; NAME= may be omitted if a set has only one source."""
    from fix_resize.pipeline.targets import FOLDER, get_target

    source = get_target(target).source
    if source == FOLDER:
        if len(options) != 1:
            raise SplitsError(f"one folder expected, not {len(options)}", where="--root", hint="--root DIR")
        return {FOLDER: Path(options[0])}
    if source is not None:
        options = [text if text.startswith(f"{source}=") else f"{source}={text}" for text in options]
    return parse_roots(options)


def _as_json(result: BuildResult) -> dict[str, Any]:
    about = result.about
    return {
        "out": str(result.folder),
        **{key: getattr(about, key) for key in ("name", "format", "images", "complete", "fingerprint")},
        "spec": about.spec,
        "quarantined": result.quarantined,
        "missing": result.missing,
        "shortfalls": [asdict(short) for short in result.shortfalls],
        "unexpected": about.unexpected,
        "shards": {"made": result.built_shards, "kept": result.reused_shards},
    }


def _print_build(result: BuildResult) -> None:
    about = result.about
    to_stderr(
        f"built {about.images:,} images of {about.name} by spec {about.spec['name']} in {result.folder}"
    )
    if result.reused_shards:
        shards = result.built_shards + result.reused_shards
        to_stderr(f"  {result.reused_shards:,} of {shards:,} shards were there already")
    _print_images("quarantined", [(row, row["reason"]) for row in result.quarantined])
    _print_images("left out", [(row, row["kind"]) for row in result.missing])
    if result.shortfalls:
        short = sum(s.wanted - s.taken for s in result.shortfalls)
        to_stderr(f"  {short:,} images fewer than required, in {len(result.shortfalls):,} classes")
    for source, count in about.unexpected.items():
        to_stderr(f"  {source}: {count:,} files with unexpected names")
    to_stdout(f"{about.fingerprint}  {result.folder}")


def _print_images(title: str, rows: Sequence[tuple[Mapping[str, str], str]]) -> None:
    if not rows:
        return
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(Counter(k for _, k in rows).items()))
    to_stderr(f"  {title}: {len(rows):,} ({kinds})")
    names = [(f"{row['source']}:{row['image_id']}", kind, row["detail"]) for row, kind in rows]
    print_first([f"    {': '.join(filter(None, parts))}" for parts in names], MAX_LINES)


@app.command("verify", examples=["fix-resize verify fixed", "fix-resize verify decimated --json"])
def verify_set(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Output folder of `build`.")],
    against: Annotated[
        Path | None,
        typer.Option(help="Table of images (images.parquet) or another output to compare with."),
    ] = None,
    json: Json = False,
) -> int:
    """Compare every image, table and number of an output with its checksums."""
    import fix_resize

    result = fix_resize.verify(folder, against=against, progress=OnStderr())
    outcome = {
        "ok": result.ok,
        "out": str(result.folder),
        "images": result.images,
        "fingerprint": result.fingerprint,
        "problems": result.rows(),
    }
    print_result(outcome, json, lambda: _print_verification(result))
    return DONE if result.ok else NEGATIVE


def _print_verification(result: Verification) -> None:
    problems = [(problem.kind, problem.image_id, problem.detail) for problem in result.problems]
    print_first([f"  {': '.join(filter(None, parts))}" for parts in problems], MAX_LINES)
    verdict = "verified" if result.ok else f"{len(result.problems):,} PROBLEMS"
    to_stdout(f"{verdict}: {result.images:,} images, fingerprint {result.fingerprint}")


@app.command(
    "audit",
    examples=[
        "fix-resize audit decimated --reference fixed --originals photographs",
        "fix-resize audit decimated --reference fixed --json",
    ],
    notes=SET_NOTE,
)
def audit_set(
    images: Annotated[str, typer.Argument(metavar="SET", help="The images to audit.")],
    reference: Annotated[str, typer.Option(metavar="SET", help="Set to compare with.")] = "cifar100:test",
    originals: Annotated[
        str | None, typer.Option(metavar="SET", help="The images before resizing, with the same names.")
    ] = None,
    root: RootOptions = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Number of images of the set to score, sampled by a hash.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for scores, histogram and images.")] = None,
    json: Json = False,
) -> int:
    """Find out whether a set was resized without a low-pass filter, by pairs if originals are given.

    Exit code 1: the set is aliased, altered, suspicious or filtered in another way; 3: images were left out.
    """
    import fix_resize

    report = fix_resize.audit(
        images,
        reference=reference,
        originals=originals,
        roots=parse_roots(root or []),
        limit=limit,
        out=out,
        progress=OnStderr(),
    )
    result = {**report.as_dict(), "files": [str(path) for path in report.files]}
    print_result(result, json, lambda: _print_report(report, originals is not None))
    _print_skipped(report.label, report.left_out)
    _print_skipped(report.reference, report.reference_left_out)
    if not report.audit.passed:
        return NEGATIVE
    return LEFT_OUT if report.left_out or report.reference_left_out else DONE


def _print_report(report: Report, with_originals: bool) -> None:
    height, width = report.size
    total = f" of {report.total:,}" if len(report.scores) < report.total else ""
    to_stdout(f"set        {report.label}: {len(report.scores):,}{total} images of {height} x {width}")
    to_stdout(f"reference  {report.reference}: {len(report.reference_variation):,} images")
    if with_originals:
        to_stdout(f"originals  for {report.pairs:,} images")
    if report.other_files:
        to_stdout(f"           {report.other_files:,} other files ignored")
    to_stdout()
    rows = [
        ("AUROC of total variation (above .5: rougher)", *_interval_texts(report.audit.signed)),
        ("AUROC of the smoothness score (above .5: unlike)", *_interval_texts(report.audit.absolute)),
        ("share whiter than 99% of the reference", *_interval_texts(report.audit.white)),
    ]
    print_table(("compared with the reference", "value", "95% interval"), rows)
    if report.audit.paired is not None:
        _print_pairs(report.audit.paired)
    to_stdout()
    to_stdout(report.audit.sentence)
    for path in report.files:
        to_stderr(f"wrote {path}")


def _print_pairs(paired: PairedAudit) -> None:
    quantiles = paired.as_dict()
    titles = {"RMS difference, grey levels": "difference", "aliasing, nearest neighbour being 1": "aliasing"}
    to_stdout()
    print_table(
        ("compared with fix of its original", "5%", "median", "95%"),
        [(title, *(f"{v:.2f}" for v in quantiles[name].values())) for title, name in titles.items()],
    )


def _interval_texts(interval: tuple[float, float, float]) -> tuple[str, str]:
    value, lo, hi = interval
    return f"{value:.3f}", f"{lo:.3f} to {hi:.3f}"


def _print_skipped(label: str, skipped: Sequence[SkippedImage]) -> None:
    lines = [f"  left out of {label}: {s.image_id}: {s.reason}: {s.detail}" for s in skipped]
    print_first(lines, MAX_LINES, of=f" of {label}")


def main() -> None:
    """Run ``fix-resize``."""
    app.start()


if __name__ == "__main__":
    main()
