"""Commands that build and verify sets of resized images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.terminal.options import AllowMissing, Json, Local, add_command
from wordnet_splits.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_first,
    print_result,
    to_stderr,
    to_stdout,
)

if TYPE_CHECKING:
    from fix_resize.pipeline.building import BuildResult
    from fix_resize.pipeline.verify import Verification

MAX_LINES: Final = 20
"""Images or problems listed on the terminal."""


def add_commands(app: typer.Typer) -> None:
    """Add the commands ``build`` and ``verify``."""
    examples = [
        "fix-resize build folder --root photographs --out fixed",
        "fix-resize build folder --root photographs --spec nearest --format parquet --out decimated",
    ]
    add_command(app, "build", build_set, examples)
    examples = ["fix-resize verify fixed", "fix-resize verify decimated --json"]
    add_command(app, "verify", verify_set, examples)


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
    from wordnet_splits.base.progress import OnStderr

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


def verify_set(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Output folder of `build`.")],
    against: Annotated[
        Path | None,
        typer.Option(help="Table of images (images.parquet) or another output to compare with."),
    ] = None,
    json: Json = False,
) -> int:
    """Compare every picture, table and number of an output with what was built."""
    import fix_resize
    from wordnet_splits.base.progress import OnStderr

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
