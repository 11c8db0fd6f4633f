"""Commands on images that look alike: audit near-duplicates, duplicates."""

from __future__ import annotations

import re
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.terminal.options import Json, Manifests, RootOptions
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    print_first,
    print_result,
    print_table,
    to_stdout,
)
from wordnet_splits.cli.main import app
from wordnet_splits.datasets.sources.roots import parse_roots

if TYPE_CHECKING:
    from wordnet_splits.base.errors import Problem
    from wordnet_splits.duplicates.find import DuplicateReport
    from wordnet_splits.duplicates.near_duplicates import NearReport

SHOWN_PAIRS = 20
SHOWN_PROBLEMS = 3


@app.command(
    "audit near-duplicates",
    examples=[
        "wordnet-splits audit near-duplicates digits --threshold 8",
        "wordnet-splits audit near-duplicates digits --threshold 8 --workers 2 --json",
    ],
)
def show_near_duplicates(
    name: Annotated[str, typer.Argument(help="A frozen benchmark, or the folder of a build.")],
    root: RootOptions = None,
    threshold: Annotated[int, typer.Option(help="Greatest distance in bits of 128.")] = 24,
    manifests: Manifests = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that read images.")] = 1,
    json: Json = False,
) -> int:
    """Find images of different groups that look alike, for a person to judge; needs roots."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.resolve import load_manifest
    from wordnet_splits.duplicates.near_duplicates import find_near_duplicates

    manifest = load_manifest(name, manifests)
    roots = parse_roots(root or [], manifest.declarations)
    report = find_near_duplicates(manifest, roots, threshold=threshold, workers=workers, progress=OnStderr())
    print_result(report, json, lambda: _print_look_alikes(report))
    return DONE


def _print_look_alikes(report: NearReport) -> None:
    print_table(
        ("group", "split", "source", "images", "compared", "why not all"),
        [(c.group, c.split, c.source, c.images, c.compared, c.why or None) for c in report.compared],
        right=("images", "compared"),
    )
    for (group_a, split_a, group_b, split_b), grouped in groupby(
        report.pairs, attrgetter("group_a", "split_a", "group_b", "split_b")
    ):
        pairs = list(grouped)
        mark = "" if pairs[0].guarded else " (two test sets)"
        to_stdout()
        to_stdout(f"{group_a} {split_a} and {group_b} {split_b}{mark}: {len(pairs):,} pairs")
        lines = [f"  {p.distance:3}  {p.image_a}  {p.image_b}" for p in pairs]
        print_first(lines, SHOWN_PAIRS, write=to_stdout)
    to_stdout()
    to_stdout(f"{len(report.pairs):,} pairs look alike (at most {report.threshold} of 128 bits apart)")
    print_first([_problem_line(p) for p in report.problems], SHOWN_PROBLEMS)


def _problem_line(problem: Problem) -> str:
    return f"  {problem.kind}: {problem.source}:{problem.image_id}: {problem.detail}"


@app.command(
    "duplicates",
    heading="Question",
    examples=[
        "wordnet-splits duplicates digits digits --out digits-twice",
        "wordnet-splits duplicates photographs drawings --out pairs --shard 1/2",
    ],
)
def show_duplicates(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A dataset, benchmark, packed store or folder of images.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="Another, the smaller set. A again: pairs within A.")],
    out: Annotated[Path, typer.Option(help="Folder of the comparison; continues an interrupted one.")],
    root: RootOptions = None,
    threshold: Annotated[int, typer.Option(help="Greatest distance in bits of 128.")] = 8,
    shard: Annotated[str, typer.Option(metavar="I/N", help="Part I of N equal parts of A.")] = "1/1",
    workers: Annotated[int, typer.Option(min=1, help="Processes that read and hash images.")] = 1,
    json: Json = False,
) -> int:
    """Find images of A that look like images of B, and make a page on which a person judges the pairs.

    A set is a dataset NAME[:SPLIT,SPLIT], a benchmark NAME:GROUP[:SPLIT], a folder with a manifest, packed
    store or output of fix-resize DIR[:GROUP[:SPLIT]], or any folder of images. Every pair of hashes within
    the threshold is found. Exit code 3: images cannot be read.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.resolve import declarations_of, has_manifest
    from wordnet_splits.duplicates.find import find_duplicates

    names = [text.partition(":")[0] for text in (a, b)]
    carried = declarations_of(*(name for name in names if has_manifest(name, None)))
    report = find_duplicates(
        *(a, b, out),
        roots=parse_roots(root or [], carried),
        threshold=threshold,
        shard=_parse_shard(shard),
        workers=workers,
        progress=OnStderr(),
    )
    print_result(report, json, lambda: _print_duplicates(report))
    return LEFT_OUT if report.problems else DONE


def _parse_shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None:
        raise SplitsError(f"must be I/N, got {text!r}", where="--shard", hint="as in --shard 1/8")
    return int(match[1]), int(match[2])


def _print_duplicates(report: DuplicateReport) -> None:
    from wordnet_splits.base.names import counted

    to_stdout(
        f"{report.a} ({report.images_a:,}) and {report.b} ({report.images_b:,}): "
        f"{counted(report.pairs, 'pair')} at most {report.threshold} of 128 bits apart"
    )
    if report.shards_missing:
        to_stdout(f"  shards to run: {', '.join(map(str, report.shards_missing))}")
    else:
        to_stdout(f"  table  {report.table} ({report.judged:,} judged)")
        to_stdout(f"  page   {report.page}")
    print_first([_problem_line(p) for p in report.problems], SHOWN_PROBLEMS)
