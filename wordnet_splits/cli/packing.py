"""The command for packed stores: pack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from wordnet_splits.base.errors import Problem, SplitsError, UnknownNameError
from wordnet_splits.base.terminal.options import (
    AllowMissing,
    Json,
    Manifests,
    OnlyGroups,
    OnlySplits,
    RootOptions,
    Workers,
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
from wordnet_splits.cli.main import app
from wordnet_splits.datasets.sources.roots import parse_roots

SHOWN_PROBLEMS = 20
COLUMNS = ("split", "group", "source", "view", "layout", "rows", "missing", "bytes", "images", "sha256")


@app.command(
    "pack",
    heading="Use",
    examples=[
        "wordnet-splits pack digits --out packed",
        "wordnet-splits pack --check --out packed",
    ],
)
def pack_benchmark(
    benchmark: Annotated[str | None, typer.Argument(help="A benchmark or a manifest's folder.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the store; packed/<benchmark> by default.")
    ] = None,
    root: RootOptions = None,
    group: OnlyGroups = None,
    split: OnlySplits = None,
    allow_missing: AllowMissing = False,
    workers: Workers = 1,
    check: Annotated[
        bool, typer.Option("--check", help="Compare all of the store at --out instead.")
    ] = False,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Write a benchmark's images into one memory-mapped store, or check such a store."""
    if check:
        return _check_store(benchmark, _out(benchmark, out), manifests, json)
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.images.pack import pack
    from wordnet_splits.benchmark.resolve import load_manifest

    if benchmark is None:
        raise SplitsError("no benchmark given", where="pack", hint="name one, or give --check and --out")
    manifest = load_manifest(benchmark, manifests)
    result = pack(
        manifest,
        _out(benchmark, out),
        roots=parse_roots(root or [], manifest.declarations),
        groups=group or (),
        splits=split or (),
        allow_missing=allow_missing,
        workers=workers,
        progress=OnStderr(),
    )
    store = result.store
    parts = [_row(store.parts[part]) for part in sorted(store.parts)]
    parts += [
        {**dict.fromkeys(COLUMNS), "split": split, "group": group, "rows": 0, "missing": missing}
        for (split, group), missing in sorted(result.missing_of.items())
        if (split, group) not in store.parts
    ]

    def print_parts() -> None:
        columns = COLUMNS[:-2]
        print_table(columns, [[p[c] for c in columns] for p in parts], right=("rows", "missing", "bytes"))
        for part in result.awaiting:
            to_stderr(f"awaiting its source: {part}")
        _print_problems(result.missing, "left out")
        to_stderr(f"packed {store.benchmark} in {store.folder}")

    packed = {
        "name": store.benchmark,
        "out": str(store.folder),
        "complete": result.complete,
        "parts": parts,
        "awaiting": result.awaiting,
        "missing": [p.as_dict() for p in result.missing],
    }
    print_result({"packed": packed}, json, print_parts)
    return DONE if result.complete else LEFT_OUT


def _out(benchmark: str | None, out: Path | None) -> Path:
    if out is not None:
        return out
    if benchmark is None:
        raise SplitsError("no store given", where="pack", hint="give --out DIR")
    return Path("packed") / Path(benchmark).name


def _row(entry: Any) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in COLUMNS}


def _check_store(benchmark: str | None, folder: Path, manifests: Path | None, json: bool) -> int:
    from wordnet_splits.benchmark.images import check_store, open_store
    from wordnet_splits.benchmark.resolve import load_manifest

    name = benchmark or open_store(folder).benchmark
    try:
        manifest = load_manifest(name, manifests)
    except UnknownNameError:
        if benchmark is not None:
            raise
        to_stderr(f"no manifest of {name} is here: images are compared with the store's own checksums only")
        manifest = None
    problems = check_store(folder, manifest)
    verdict = f"{len(problems):,} problems" if problems else "every byte is as it was packed"

    def print_verdict() -> None:
        _print_problems(problems, "damaged")
        to_stdout(f"{folder}: {verdict}")

    print_result({"ok": not problems, "problems": [p.as_dict() for p in problems]}, json, print_verdict)
    return NEGATIVE if problems else DONE


def _print_problems(problems: Sequence[Problem], label: str) -> None:
    print_first([f"{label}: {p.source} {p.image_id or ''} {p.detail}" for p in problems], SHOWN_PROBLEMS)
