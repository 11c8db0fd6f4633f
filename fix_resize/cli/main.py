"""The command ``fix-resize``: build sets, verify them, audit any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fix_resize.cli import audit as cli_audit
from wordnet_splits.cli.options import AllowMissing, Json, add_command, make_program, parse_roots
from wordnet_splits.cli.output import DONE, LEFT_OUT, NEGATIVE, print_json, say, show
from wordnet_splits.cli.runner import start
from wordnet_splits.errors import SplitsError, unknown

if TYPE_CHECKING:
    from fix_resize.pipeline import Built
    from fix_resize.pipeline.selection import Worklist

app = make_program(
    "fix-resize",
    "Resize images into small benchmarks without the artefacts that gave earlier ones away.",
    [
        "fix-resize build folder --root photographs --out fixed",
        "fix-resize verify fixed",
    ],
)

SHOWN: Final = 20
BACKENDS: Final = ("auto", "pillow", "numba", "numpy")


@dataclass(frozen=True)
class Asked:
    """What to select, as the command line says it."""

    what: str
    benchmark: str | None
    root: Sequence[str]
    group: Sequence[str]
    split: Sequence[str]
    per_class: int | None
    local: bool
    allow_missing: bool


def _named(asked: Asked) -> Worklist:
    from fix_resize.pipeline.selection import NAMED, select_named

    return select_named(
        asked.what,
        _roots(asked.root, NAMED[asked.what].source),
        local=asked.local,
        per_class=asked.per_class,
        allow_missing=asked.allow_missing,
    )


def _manifest(asked: Asked) -> Worklist:
    from fix_resize.pipeline.selection import select_manifest

    assert asked.benchmark is not None, "checked"
    return select_manifest(
        asked.benchmark,
        parse_roots(asked.root),
        groups=asked.group,
        splits=asked.split,
        local=asked.local,
        allow_missing=asked.allow_missing,
    )


def _folder(asked: Asked) -> Worklist:
    from fix_resize.pipeline.selection import select_folder

    if len(asked.root) != 1:
        raise SplitsError(f"one folder is needed, not {len(asked.root)}", where="--root", hint="--root DIR")
    return select_folder(Path(asked.root[0]).expanduser())


@dataclass(frozen=True)
class Target:
    """What can be built, and the options that it has beside those of all."""

    select: Callable[[Asked], Worklist]
    takes: tuple[str, ...]


TARGETS: Final = {
    "lsun": Target(_named, ("per_class", "local", "allow_missing")),
    "tiny-imagenet": Target(_named, ("local", "allow_missing")),
    "from-manifest": Target(_manifest, ("benchmark", "group", "split", "local", "allow_missing")),
    "folder": Target(_folder, ()),
}


def build_set(
    what: Annotated[str, typer.Argument(metavar="|".join(TARGETS), help="What to build.")],
    out: Annotated[Path, typer.Option(help="Folder to build in; the same command goes on with it.")],
    benchmark: Annotated[
        str | None, typer.Argument(metavar="BENCHMARK", help="from-manifest: a name or a folder.")
    ] = None,
    root: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]DIR", help="Where a source's files are; repeatable."),
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
    local: Annotated[
        bool,
        typer.Option("--local", help="Draw from what a root holds where its counts are unknown: NAME@local."),
    ] = False,
    allow_missing: AllowMissing = False,
    spec: Annotated[
        str | None, typer.Option(help="Resize spec, such as fix-64; the group's view unless given, else fix.")
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help="png: a tree of files. parquet: shards, as `datasets` reads them.")
    ] = "png",
    backend: Annotated[
        str, typer.Option(help=f"{', '.join(BACKENDS)}: equal bytes from each; auto is numba if installed.")
    ] = "auto",
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="tcp://HOST:PORT", help="A Dask scheduler to use instead.")
    ] = None,
    shard_size: Annotated[int, typer.Option(min=1, help="Images of a shard, the unit of work.")] = 1000,
    json: Json = False,
) -> int:
    """Build a set of resized images, or go on with one.

    lsun: LSUN-FIX, from LSUN's train databases. tiny-imagenet: TinyImageNet158-FIX, from ImageNet's train
    images. from-manifest: groups of any benchmark. folder: any folder of images, names kept.
    """
    from fix_resize.pipeline import Settings, build
    from fix_resize.pipeline.cluster import check_address
    from fix_resize.pipeline.formats import get_format
    from fix_resize.spec import get_spec
    from wordnet_splits.progress import OnStderr

    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS, where="--backend")
    if scheduler is not None and workers > 1:
        raise SplitsError("give --workers or --scheduler, not both")
    get_format(format_)
    asked = Asked(what, benchmark, root or (), group or (), split or (), per_class, local, allow_missing)
    target = _target(asked)
    chosen = None if spec is None else get_spec(spec)
    if scheduler is not None and (text := check_address(scheduler)):
        say(text)
    selection = target.select(asked)
    settings = Settings(
        spec=chosen or get_spec(_view(selection.views)),
        file_format=format_,
        backend=backend,
        shard_size=shard_size,
        allow_missing=allow_missing,
        workers=workers,
        scheduler=scheduler,
        progress=OnStderr(),
    )
    if settings.spec.study_only:
        say(f"note: spec {settings.spec.name} is broken on purpose, for study ({settings.spec.about})")
    built = build(selection, out, settings)
    if json:
        print_json(_as_json(built))
    else:
        _say(built)
    return DONE if built.complete and not built.quarantined else LEFT_OUT


def _target(asked: Asked) -> Target:
    """Return the target asked for, after refusing options that another one has."""
    if asked.what not in TARGETS:
        raise unknown("set to build", asked.what, TARGETS)
    target = TARGETS[asked.what]
    for option in {name for other in TARGETS.values() for name in other.takes} - set(target.takes):
        if getattr(asked, option):
            shown = option if option == "benchmark" else f"--{option.replace('_', '-')}"
            takers = ", ".join(name for name, other in TARGETS.items() if option in other.takes)
            raise SplitsError(f"{asked.what} takes no {shown}", hint=f"that is for {takers}")
    if "benchmark" in target.takes and asked.benchmark is None:
        hint = "as in: fix-resize build from-manifest unknown-cifar --group tin158"
        raise SplitsError("no benchmark given", hint=hint)
    return target


def _roots(given: Sequence[str], source: str) -> Mapping[str, Path]:
    """Return the roots of a set with one source, whose name may be left out."""
    return parse_roots([text if text.startswith(f"{source}=") else f"{source}={text}" for text in given])


def _view(views: frozenset[str]) -> str:
    """Return the name of the spec that the chosen groups are viewed through."""
    resized = sorted(views - {"raw"})
    if len(resized) > 1:
        raise SplitsError(f"the groups have different views: {', '.join(resized)}", hint="give --spec")
    return resized[0] if resized else "fix"


def _as_json(built: Built) -> dict[str, Any]:
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


def _say(built: Built) -> None:
    about = built.about
    say(f"built {about.images:,} images of {about.name} by spec {about.spec['name']} in {built.folder}")
    if built.kept:
        say(f"  {built.kept:,} of {built.made + built.kept:,} shards were there already")
    _say_rows("quarantined", [(row, row["reason"]) for row in built.quarantined])
    _say_rows("left out", [(row, row["kind"]) for row in built.missing])
    if built.shortfalls:
        short = sum(s.wanted - s.taken for s in built.shortfalls)
        say(f"  {short:,} images fewer than asked for, in {len(built.shortfalls):,} classes")
    for source, count in about.unexpected.items():
        say(f"  {source}: {count:,} files under no known name")
    show(f"{about.fingerprint}  {built.folder}")


def _say_rows(what: str, rows: Sequence[tuple[Mapping[str, str], str]]) -> None:
    if not rows:
        return
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(Counter(k for _, k in rows).items()))
    say(f"  {what}: {len(rows):,} ({kinds})")
    for row, kind in rows[:SHOWN]:
        say(f"    {row['source']}:{row['image_id']}: {kind}{': ' + row['detail'] if row['detail'] else ''}")
    if len(rows) > SHOWN:
        say(f"    and {len(rows) - SHOWN:,} more (--json has all)")


def verify_set(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `build` made.")],
    against: Annotated[
        Path | None,
        typer.Option(help="A frozen table of images (images.parquet), or another output, to equal."),
    ] = None,
    json: Json = False,
) -> int:
    """Compare every picture, table and figure of an output with what was built."""
    from fix_resize.pipeline.verify import verify
    from wordnet_splits.progress import OnStderr

    found = verify(folder, against=against, progress=OnStderr())
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
    for problem in found.problems[:SHOWN]:
        say(f"  {problem.kind}: {f'{problem.image_id}: ' if problem.image_id else ''}{problem.detail}")
    if len(found.problems) > SHOWN:
        say(f"  and {len(found.problems) - SHOWN:,} more (--json has all)")
    verdict = "verified" if found.ok else f"{len(found.problems):,} PROBLEMS"
    show(f"{verdict}: {found.images:,} images, fingerprint {found.fingerprint}")
    return DONE if found.ok else NEGATIVE


BUILD_EXAMPLES: Final = [
    "fix-resize build folder --root photographs --out fixed",
    "fix-resize build folder --root photographs --spec nearest --format parquet --out decimated",
]
add_command(app, "build", build_set, BUILD_EXAMPLES)
add_command(app, "verify", verify_set, ["fix-resize verify fixed", "fix-resize verify decimated --json"])
cli_audit.register(app)


def main() -> None:
    """Run ``fix-resize``."""
    start(app, "fix-resize")


if __name__ == "__main__":
    main()
