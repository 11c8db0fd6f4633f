"""Commands on images that are in several sets or copies: leaks, duplicates."""

from __future__ import annotations

import re
from itertools import groupby, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.terminal.options import Json, Manifests, RootOptions, add_command
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    NEGATIVE,
    print_first,
    print_lines,
    print_result,
    print_table,
    to_stdout,
)
from wordnet_splits.datasets.sources.roots import parse_roots

if TYPE_CHECKING:
    from wordnet_splits.base.errors import Problem
    from wordnet_splits.benchmark.checks.leaks import LeakReport
    from wordnet_splits.duplicates.find import DuplicateReport
    from wordnet_splits.duplicates.near_duplicates import NearPair, NearReport

SHOWN_PAIRS = 20
SHOWN_PROBLEMS = 3


COMMANDS = ("leaks", "duplicates")


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    leaks = ["wordnet-splits leaks unknown-cifar", "wordnet-splits leaks digits --near --threshold 8"]
    add_command(app, "leaks", show_leaks, leaks)
    duplicates = [
        "wordnet-splits duplicates digits digits --out digits-twice",
        "wordnet-splits duplicates photographs pictures --out pairs --shard 1/2",
    ]
    add_command(app, "duplicates", show_duplicates, duplicates)


def show_leaks(
    name: Annotated[str, typer.Argument(help="A frozen benchmark, or the folder of a build.")],
    near: Annotated[
        bool, typer.Option("--near", help="Also look for images that look alike, where roots are given.")
    ] = False,
    root: RootOptions = None,
    threshold: Annotated[int, typer.Option(help="With --near: greatest distance in bits of 128.")] = 24,
    manifests: Manifests = None,
    workers: Annotated[int, typer.Option(min=1, help="With --near: processes that read images.")] = 1,
    json: Json = False,
) -> int:
    """List every leak between a benchmark's groups: classes, ancestry, identical and look-alike images.

    The exit code is 1 where the manifest does not record a leak, or records one that is not there. The
    look-alikes of --near are for a person to judge and never change the exit code.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.checks.leaks import report_leaks
    from wordnet_splits.benchmark.resolve import load_manifest
    from wordnet_splits.duplicates.near_duplicates import find_near_duplicates

    manifest = load_manifest(name, manifests)
    roots = parse_roots(root or [], manifest.declarations)
    exact = report_leaks(manifest)
    alike = None
    if near:
        alike = find_near_duplicates(
            manifest, roots, threshold=threshold, workers=workers, progress=OnStderr()
        )
    result = {**exact.as_dict(), "near": alike.as_dict() if alike else None}
    print_result(result, json, lambda: _print_leaks(exact, alike))
    return DONE if exact.ok else NEGATIVE


def _print_leaks(report: LeakReport, alike: NearReport | None) -> None:
    from wordnet_splits.benchmark.checks.leaks import AS_RECORDED

    for leak in report.leaks:
        status = leak.severity if leak.status == AS_RECORDED else leak.status.upper()
        status += f": {leak.reason}" if leak.reason else ""
        between = f"within {leak.a}" if leak.a == leak.b else f"between {leak.a} and {leak.b}"
        to_stdout(f"{leak.kind} {between}: {len(leak.pairs):,}, {status}")
        pairs = (f"  {a}" if a == b else f"  {a}  {b}" for a, b in leak.pairs)
        distances = (f"  {distance:>3}" for distance in leak.distances) if leak.distances else repeat("")
        print_lines(map(str.__add__, distances, pairs))
    for row in report.unchecked:
        to_stdout(f"not compared by digest: {row['group']} {row['split']}: {row['why']}")
    left_out = f"{report.groups_not_compared:,} groups not compared"
    verdict = "all recorded" if report.ok else "NOT as the manifest records them"
    to_stdout(f"{report.name}: {report.exact:,} exact among what was compared, {left_out}; {verdict}")
    if alike:
        _print_look_alikes(alike)


def _print_look_alikes(report: NearReport) -> None:
    to_stdout()
    print_table(
        ("group", "split", "source", "images", "compared", "why not all"),
        [(c.group, c.split, c.source, c.images, c.compared, c.why or None) for c in report.compared],
        right=("images", "compared"),
    )
    for (group_a, split_a, group_b, split_b), grouped in groupby(report.pairs, _sets_of):
        pairs = list(grouped)
        mark = "" if pairs[0].guarded else " (two test sets)"
        to_stdout()
        to_stdout(f"{group_a} {split_a} and {group_b} {split_b}{mark}: {len(pairs):,} pairs")
        lines = [f"  {p.distance:3}  {p.image_a}  {p.image_b}" for p in pairs]
        print_first(lines, SHOWN_PAIRS, write=to_stdout)
    to_stdout()
    to_stdout(f"{len(report.pairs):,} pairs look alike (at most {report.threshold} of 128 bits apart)")
    print_first([_problem_line(p) for p in report.problems], SHOWN_PROBLEMS)


def _sets_of(pair: NearPair) -> tuple[str, str, str, str]:
    return pair.group_a, pair.split_a, pair.group_b, pair.split_b


def _problem_line(problem: Problem) -> str:
    return f"  {problem.kind}: {problem.source}:{problem.image_id}: {problem.detail}"


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
    from wordnet_splits.duplicates.find import find_duplicates

    report = find_duplicates(
        *(a, b, out),
        roots=parse_roots(root or []),
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
        raise SplitsError(f"{text!r} is not I/N", where="--shard", hint="as in --shard 1/8")
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
