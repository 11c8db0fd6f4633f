"""Commands that build sets of resized images, and verify them."""

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
    print_json,
    to_stderr,
    to_stdout,
)

if TYPE_CHECKING:
    from fix_resize.pipeline import BuildResult

SHOWN: Final = 20


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    examples = [
        "fix-resize build folder --root photographs --out fixed",
        "fix-resize build folder --root photographs --spec nearest --format parquet --out decimated",
    ]
    add_command(app, "build", build_set, examples)
    examples = ["fix-resize verify fixed", "fix-resize verify decimated --json"]
    add_command(app, "verify", verify_set, examples)


def build_set(
    what: Annotated[str, typer.Argument(metavar="SET", help="lsun, tiny-imagenet, from-manifest or folder.")],
    out: Annotated[Path, typer.Option(help="Folder to build in; the same command continues it.")],
    benchmark: Annotated[
        str | None, typer.Argument(metavar="BENCHMARK", help="from-manifest: a name or a folder.")
    ] = None,
    root: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]DIR", help="Where a source's files are; repeatable.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="from-manifest: a group; repeatable. All that have a resize view unless given."),
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="from-manifest: train, val or test; repeatable.")
    ] = None,
    per_class: Annotated[
        int | None,
        typer.Option(min=1, help="lsun: images of each scene, 400 (Kim et al.) unless given; CSI has 1000."),
    ] = None,
    local: Local = False,
    allow_missing: AllowMissing = False,
    spec: Annotated[
        str | None, typer.Option(help="Resize spec, such as fix-64; the group's view unless given, else fix.")
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help="png: a tree of files. parquet: shards, as `datasets` reads them.")
    ] = "png",
    backend: Annotated[
        str, typer.Option(help="pillow, numba, numpy: equal bytes from each; auto is numba if installed.")
    ] = "auto",
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="tcp://HOST:PORT", help="A Dask scheduler to use instead.")
    ] = None,
    shard_size: Annotated[int, typer.Option(min=1, help="Images of a shard, the unit of work.")] = 1000,
    identify: Annotated[
        str, typer.Option(help="How a changed image is known: stat (size and time of its file), digest.")
    ] = "stat",
    json: Json = False,
) -> int:
    """Build a set of resized images, or continue one.

    lsun: LSUN-FIX, from LSUN's train databases. tiny-imagenet: TinyImageNet158-FIX, from ImageNet's train
    images. from-manifest: groups of any benchmark. folder: any folder of images, names kept.
    """
    import fix_resize
    from wordnet_splits.base.progress import OnStderr

    built = fix_resize.build(
        what,
        out,
        benchmark=benchmark,
        roots=_roots(what, root or []),
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
    if json:
        print_json(_as_json(built))
    else:
        _say(built)
    return DONE if built.complete and not built.quarantined else LEFT_OUT


def _roots(what: str, given: Sequence[str]) -> dict[str, Path]:
    """Return roots by source; the name may be left out where a set has one source."""
    from fix_resize.pipeline.targets import FOLDER, get_target

    source = get_target(what).source
    if source == FOLDER:
        if len(given) != 1:
            raise SplitsError(f"one folder is needed, not {len(given)}", where="--root", hint="--root DIR")
        return {FOLDER: Path(given[0])}
    if source is not None:
        given = [text if text.startswith(f"{source}=") else f"{source}={text}" for text in given]
    return parse_roots(given)


def _as_json(built: BuildResult) -> dict[str, Any]:
    return {
        "out": str(built.folder),
        **{key: getattr(built.about, key) for key in ("name", "format", "images", "complete", "fingerprint")},
        "spec": built.about.spec,
        "quarantined": built.quarantined,
        "missing": built.missing,
        "shortfalls": [asdict(short) for short in built.shortfalls],
        "unexpected": built.about.unexpected,
        "shards": {"made": built.made, "kept": built.kept},
    }


def _say(built: BuildResult) -> None:
    about = built.about
    to_stderr(f"built {about.images:,} images of {about.name} by spec {about.spec['name']} in {built.folder}")
    if built.kept:
        to_stderr(f"  {built.kept:,} of {built.made + built.kept:,} shards were there already")
    _say_rows("quarantined", [(row, row["reason"]) for row in built.quarantined])
    _say_rows("left out", [(row, row["kind"]) for row in built.missing])
    if built.shortfalls:
        short = sum(s.wanted - s.taken for s in built.shortfalls)
        to_stderr(f"  {short:,} images fewer than asked for, in {len(built.shortfalls):,} classes")
    for source, count in about.unexpected.items():
        to_stderr(f"  {source}: {count:,} files under no known name")
    to_stdout(f"{about.fingerprint}  {built.folder}")


def _say_rows(what: str, rows: Sequence[tuple[Mapping[str, str], str]]) -> None:
    if not rows:
        return
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(Counter(k for _, k in rows).items()))
    to_stderr(f"  {what}: {len(rows):,} ({kinds})")
    names = [(f"{row['source']}:{row['image_id']}", kind, row["detail"]) for row, kind in rows]
    print_first([f"    {': '.join(filter(None, parts))}" for parts in names], SHOWN)


def verify_set(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `build` made.")],
    against: Annotated[
        Path | None,
        typer.Option(help="A frozen table of images (images.parquet), or another output, to equal."),
    ] = None,
    json: Json = False,
) -> int:
    """Compare every picture, table and figure of an output with what was built."""
    import fix_resize
    from wordnet_splits.base.progress import OnStderr

    found = fix_resize.verify(folder, against=against, progress=OnStderr())
    if json:
        print_json(
            {
                "ok": found.ok,
                "out": str(found.folder),
                "images": found.images,
                "fingerprint": found.fingerprint,
                "problems": [problem.as_dict() for problem in found.problems],
            }
        )
        return DONE if found.ok else NEGATIVE
    problems = [(problem.kind, problem.image_id, problem.detail) for problem in found.problems]
    print_first([f"  {': '.join(filter(None, parts))}" for parts in problems], SHOWN)
    verdict = "verified" if found.ok else f"{len(found.problems):,} PROBLEMS"
    to_stdout(f"{verdict}: {found.images:,} images, fingerprint {found.fingerprint}")
    return DONE if found.ok else NEGATIVE
