"""Commands that write and read the formats of other projects: export, import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.terminal.options import AllowMissing, Json, Manifests, RootOptions, add_command
from wordnet_splits.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_first,
    print_json,
    print_table,
    to_stderr,
    to_stdout,
)

if TYPE_CHECKING:
    from wordnet_splits.exchange import Imported
    from wordnet_splits.exchange.entries import ListEntry

SHOWN = 20
FormatName = Annotated[str, typer.Argument(metavar="FORMAT", help="As in `export --format`.")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    examples = [
        "wordnet-splits export digits --format openood --out digits-openood",
        "wordnet-splits export digits --format imagefolder --out digits-tree",
    ]
    notes = "Formats: csv, hub, imagefolder, openood, openset-imagenet, pytorch-ood, webdataset."
    add_command(app, "export", export, examples, notes)
    examples = [
        "wordnet-splits import openood digits-openood --out imported",
        "wordnet-splits import imagefolder digits-tree --out imported --json",
    ]
    notes = f"{notes[:-1]}; facets and kim-archive (what the papers' authors have published) are only read."
    add_command(app, "import", import_, examples, notes)


def export(
    benchmark: Annotated[str, typer.Argument(help="A frozen benchmark, or a manifest's folder.")],
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="Which format; see below.")],
    out: Annotated[Path, typer.Option(help="Folder to make; nothing is overwritten.")],
    root: RootOptions = None,
    copies: Annotated[bool, typer.Option("--copies", help="Copy files instead of linking to them.")] = False,
    ids_only: Annotated[bool, typer.Option("--ids-only", help="Write no pictures (hub).")] = False,
    group: Annotated[list[str] | None, typer.Option(help="This group only (again for more).")] = None,
    split: Annotated[list[str] | None, typer.Option(help="This split only (again for more).")] = None,
    allow_missing: AllowMissing = False,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Write a benchmark in another project's format, or a part of one."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.exchange import export_benchmark
    from wordnet_splits.recipe import declarations_of

    done = export_benchmark(
        benchmark,
        format_,
        out,
        roots=parse_roots(root or [], declarations_of(benchmark, manifests=manifests)),
        copies=copies,
        ids_only=ids_only,
        allow_missing=allow_missing,
        groups=group or (),
        splits=split or (),
        manifests=manifests,
        progress=OnStderr(),
    )
    if json:
        about = {"name": done.name, "format": done.format, "out": str(done.folder), "images": done.images}
        missing = [p.as_dict() for p in done.problems]
        print_json({"exported": about | {"awaiting": done.awaiting, "missing": missing}})
    else:
        for awaited in done.awaiting:
            to_stderr(f"awaiting its source, so not in it: {awaited}")
        print_first([f"left out: {p.source} {p.image_id}: {p.detail}" for p in done.problems], SHOWN)
        to_stdout(f"exported {done.images:,} images of {done.name} as {done.format} to {done.folder}")
    return DONE if done.complete else LEFT_OUT


def import_(
    format_: FormatName,
    path: Annotated[Path, typer.Argument(help="A file or folder of that format.")],
    out: Annotated[Path, typer.Option(help="Folder to write <name>/ into.")] = Path("imported"),
    name: Annotated[str | None, typer.Option(help="Of lists that are no export of ours.")] = None,
    split: Annotated[str, typer.Option(help="Of a list whose name does not say it.")] = "test",
    role: Annotated[
        list[str] | None, typer.Option(metavar="GROUP=ROLE", help="id, near, far, external, csid.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="[GROUP=]NAME", help="Source of a group, or of all, if paths do not say it."),
    ] = None,
    root: RootOptions = None,
    allow_missing: AllowMissing = False,
    json: Json = False,
) -> int:
    """Read a benchmark in another project's format and write its manifest.

    What `export` wrote comes back as it was: the fingerprints are compared (exit code 1 where they differ).
    Other lists become a recipe, OUT/NAME.toml, with its lists beside it.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.exchange import import_benchmark

    fallbacks = [text for text in source or [] if "=" not in text]
    if len(fallbacks) > 1:
        raise SplitsError("two sources for all groups", where="--source", hint="say GROUP=NAME")
    done = import_benchmark(
        format_,
        path,
        out,
        name=name,
        split=split,
        roles=_pairs("--role", role or []),
        sources=_pairs("--source", [text for text in source or [] if "=" in text]),
        source=fallbacks[0] if fallbacks else None,
        roots=parse_roots(root or []),
        allow_missing=allow_missing,
        progress=OnStderr(),
    )
    every = [done, *done.also]
    if json:
        also = [_as_dict(other) for other in done.also]
        print_json({"imported": _as_dict(done) | ({"also": also} if also else {})})
    else:
        for one in every:
            _tell(one)
    if not all(one.same for one in every):
        return NEGATIVE
    return LEFT_OUT if any(one.unmatched or one.problems for one in every) else DONE


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for text, (key, _, value) in zip(given, pairs, strict=True):
        if not key or not value:
            raise SplitsError(f"{text!r} is not GROUP={option[2:].upper()}", where=option)
    return {key: value for key, _, value in pairs}


def _named(entry: ListEntry) -> str:
    return entry.path or entry.image_id or entry.class_id or ""


def _as_dict(done: Imported) -> dict[str, Any]:
    return {
        "name": done.name,
        "out": str(done.folder),
        "recipe": None if done.recipe is None else str(done.recipe),
        "lists": done.lists,
        "groups": [] if done.manifest is None else [g.model_dump() for g in done.manifest.groups],
        "fingerprint": done.fingerprint,
        "expected": done.expected,
        "same": done.same,
        "differences": done.differences,
        "unmatched": [_named(entry) for entry in done.unmatched],
        "missing": [p.as_dict() for p in done.problems],
        "left_out": [
            {"set": row.folder, "pictures": len(row.paths), "reason": row.reason} for row in done.left_out
        ],
        "like": done.like,
        "in_common": [vars(row) for row in done.in_common],
    }


def _tell(done: Imported) -> None:
    from wordnet_splits.cli.benchmarks import print_groups

    if done.manifest is not None:
        print_groups([(done.name, done.manifest.groups, None)])
    for left_out in done.left_out:
        to_stderr(f"left out: {left_out}")
    if not done.left_out:
        said = [f"left out: {e.group} {e.split or 'classes'}: {_named(e)}" for e in done.unmatched]
        print_first(said, SHOWN)
    print_first([f"left out: {p.source} {p.image_id}: {p.detail}" for p in done.problems], SHOWN)
    print_first([f"differs: {text}" for text in done.differences], SHOWN)
    if done.manifest is None:
        to_stdout("no group is ID, so there is no benchmark yet; a recipe beside `lists` can name")
        for name in done.lists:
            to_stdout(f'  {{ list = "{name}" }}')
        return
    if done.like is not None:
        columns = ("group", "of", "both", f"only {done.like}", f"only {done.name}")
        rows = [(row.group, row.of, row.both, row.only_a, row.only_b) for row in done.in_common]
        print_table(columns, rows, right=columns[2:])
    to_stdout(
        f"imported {done.name} to {done.folder}" + (f", its recipe {done.recipe}" if done.recipe else "")
    )
    if done.expected is not None and done.same:
        to_stdout("every fingerprint is that of the export")
