"""Commands on datasets: sources, fetch, doctor, leaks, join, cite."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.terminal.options import Json, Manifests, RootOptions, Workers, add_command
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
    from wordnet_splits.base.errors import Problem
    from wordnet_splits.checks.doctor import Awaited, BenchmarkState, Diagnosis
    from wordnet_splits.checks.leaks import LeakReport
    from wordnet_splits.duplicates.join import By, Join
    from wordnet_splits.duplicates.near_duplicates import NearReport


SHOWN_PAIRS = 20
SHOWN_PROBLEMS = 3
SHOWN_NAMES = 3
COLUMNS = 100  # of the tables of `doctor --root` where there is no terminal to fit
WIDTH = 40  # of a column in the table of sources; `sources NAME` has the whole text


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    add_command(app, "sources", show_sources, ["wordnet-splits sources", "wordnet-splits sources imagenet1k"])
    files = "wordnet-splits fetch svhn --file extra_32x32.mat --dry-run"
    add_command(app, "fetch", fetch_source, ["wordnet-splits fetch cifar100 --dry-run", files])
    add_command(app, "doctor", examine, ["wordnet-splits doctor", "wordnet-splits doctor --json"])
    examples = ["wordnet-splits leaks unknown-cifar", "wordnet-splits leaks digits --near --threshold 8"]
    add_command(app, "leaks", show_leaks, examples)
    guess = "wordnet-splits join openood-tin597 imagenet1k --by position"
    examples = ["wordnet-splits join openood-mnist mnist", guess]
    add_command(app, "join", join_copies, examples)
    examples = ["wordnet-splits cite unknown-cifar", "wordnet-splits cite digits --json"]
    add_command(app, "cite", cite_benchmark, examples)


def show_sources(
    name: Annotated[str | None, typer.Argument(help="A source; all of them by default.")] = None,
    json: Json = False,
) -> int:
    """Say where a dataset is published, its licence, size, checksums and expected tree, and how to get it."""
    from wordnet_splits.sources import source_class, source_info, source_names

    rows = [_source_row(n) for n in ([source_info(name).name] if name else source_names())]
    if json:
        print_json({"sources": rows})
    elif name is None:
        print_table(
            ("source", "classes", "images", "size", "licence", "address"),
            [
                (r["name"], r["classes"], r["images"], _clip(r["size"]), _clip(r["licence"]), r["url"])
                for r in rows
            ],
            right=("classes", "images"),
        )
    else:
        _print_source(rows[0], source_class(name).rooted)
    return DONE


def _clip(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def _source_row(name: str) -> dict[str, Any]:
    from dataclasses import asdict

    from wordnet_splits.catalog import load_catalog
    from wordnet_splits.sources import source_class, source_info

    info = asdict(source_info(name))
    splits = source_class(name).expected()
    known = [n for n in splits.values() if n is not None]
    images = sum(known) if len(known) == len(splits) else None
    return {**info, "classes": len(load_catalog(name)), "splits": splits, "images": images}


def _print_source(row: dict[str, Any], rooted: bool) -> None:
    from wordnet_splits.sources import root_variable

    to_stdout(f"{row['name']}: {row['title']}")
    to_stdout(f"  address   {row['url']}")
    to_stdout(f"  licence   {row['licence']}")
    to_stdout(f"  size      {row['size']}")
    counts = (f"{s} {'not published' if n is None else f'{n:,}'}" for s, n in row["splits"].items())
    to_stdout(f"  images    {', '.join(counts)}; {row['classes']:,} classes")
    to_stdout(f"  get it    {row['how']}")
    for file in row["files"]:
        sums = [f"{kind} {file[kind]}" for kind in ("md5", "sha256") if file[kind]]
        to_stdout(f"  file      {file['file']}  {', '.join(sums) or 'no checksum known'}")
    for line in row["tree"].splitlines():
        to_stdout(f"  tree      {line}")
    if rooted:
        to_stdout(f"  root      --root {row['name']}=DIR, {root_variable(row['name'])}=DIR, or roots.toml")


def fetch_source(
    source: Annotated[str, typer.Argument(help="A source, as `wordnet-splits sources` lists them.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder that becomes its root; data/SOURCE by default.")
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(help="A file of the publisher's (again for more); by default those benchmarks need."),
    ] = None,
    mirror: Annotated[
        str | None, typer.Option(help="An address below which the same files lie; checksums hold there, too.")
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Take the copy on the Hugging Face Hub.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the publisher's files, checksums and addresses.")
    ] = False,
    json: Json = False,
) -> int:
    """Fetch a dataset where its publisher lets anybody do so, check it and unpack it; else say how to get it.

    Ctrl-C loses nothing: the same command goes on where it stopped.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.fetching.source import fetch, offered

    if dry_run:
        wanted = [
            {"file": f.file, "md5": f.md5, "sha256": f.sha256, "url": url}
            for f, url in offered(source, files=file or [], mirror=mirror)
        ]
        if json:
            print_json({"source": source, "files": wanted})
        else:
            print_table(
                ("file", "checksum", "address"),
                [(w["file"], w["sha256"] or w["md5"], w["url"]) for w in wanted],
            )
        return DONE
    found = fetch(source, out, files=file or [], mirror=mirror, hub=hub, progress=OnStderr())
    if json:
        print_json(found.as_dict())
        return DONE
    rows = [(f.file, f"{f.size:,}", "received" if f.received else "was there") for f in found.files]
    print_table(("file", "bytes", "state"), rows, right=("bytes",))
    to_stdout(f"{found.source} from {found.origin}: checksums compared; layout {found.layout}")
    to_stdout(f"read it with --root {found.source}={found.root}")
    return DONE


def examine(root: RootOptions = None, manifests: Manifests = None, json: Json = False) -> int:
    """Look at every source's root, and say what each benchmark lacks."""
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.checks.doctor import carried, doctor

    roots = parse_roots(root or [], carried(manifests))
    given = {name: roots[name] for name in (text.partition("=")[0] for text in root or [])}
    found = doctor(given, manifests=manifests, progress=OnStderr())
    if json:
        print_json(found.as_dict())
        return DONE
    shown = found.of(given) if given else found
    _print_sources_at_hand(shown, COLUMNS if given else None)
    _print_benchmarks(shown, given)
    if given:
        sources, benchmarks = (len(found.sources) - len(shown.sources), len(found.benchmarks))
        to_stdout()
        to_stdout(
            f"not shown: {sources:,} other sources, and {benchmarks - len(shown.benchmarks):,} benchmarks"
        )
        to_stdout(
            f"without {' or '.join(given)}; `wordnet-splits doctor` without --root, or --json, shows all"
        )
    return DONE


def _print_sources_at_hand(found: Diagnosis, most: int | None) -> None:
    from wordnet_splits.checks.doctor import held_text

    rows = []
    for s in found.sources:
        held = ", ".join(held_text(p) for p in s.splits if (p.held, p.expected) != (None, None))
        unexpected = sum(s.unexpected.values()) or None
        rows.append((s.name, s.state, s.layout, held or None, unexpected, _gigabytes(s.free), s.root))
    columns = ("source", "state", "layout", "images held of published", "other files", "free disk", "root")
    print_table(columns, rows, right=("other files", "free disk"), most=most)
    for s in found.sources:
        if s.error:
            hint = f" ({s.error['hint']})" if s.error["hint"] else ""
            to_stdout(f"  {s.name}: {s.error['where'] or s.root}: {s.error['what']}{hint}")
        if s.unexpected:
            names = ", ".join(list(s.unexpected)[:SHOWN_NAMES])
            count = sum(s.unexpected.values())
            to_stdout(f"  {s.name}: {count:,} files under no known name, such as {names}")


def _gigabytes(free: int | None) -> str | None:
    return None if free is None else f"{free / 1e9:,.1f} GB"


def _print_benchmarks(found: Diagnosis, only: Collection[str]) -> None:
    """Print a row a benchmark; with ``only``, what it lacks of these sources, and of how many others."""
    to_stdout()
    rows = []
    for b in found.benchmarks:
        state = "complete" if b.complete else "frozen in part" if b.frozen else "not frozen"
        state = "unreadable" if b.error else state
        awaits = sorted({a.needs + (" (at hand)" if a.ready else "") for a in _awaited(b, only)})
        lacking = {s: t for s, t in b.pixels.items() if t not in ("complete", "built in")}
        told = [f"{s}: {t}" for s, t in lacking.items() if not only or s in only]
        others = (len(lacking) - len(told) or None,) if only else ()
        rows.append((b.name, state, ", ".join(awaits) or None, "; ".join(told) or None, *others))
    columns = (
        "benchmark",
        "images",
        "awaits",
        "pixels lacking",
        *(["other sources lacking"] if only else []),
    )
    print_table(columns, rows, right=columns[4:], most=COLUMNS if only else None)
    for b in found.benchmarks:
        if b.error:
            to_stdout(f"  {b.name}: {b.error['where']}: {b.error['what']}")
    reasons = {(a.needs, a.reason) for b in found.benchmarks for a in _awaited(b, only)}
    for needs, reason in sorted(reasons):
        to_stdout(f"  {needs}: {reason}")


def _awaited(benchmark: BenchmarkState, only: Collection[str]) -> list[Awaited]:
    return [a for a in benchmark.awaits if not only or a.needs.partition(" ")[0] in only]


def show_leaks(
    name: Annotated[str, typer.Argument(help="A frozen benchmark, or the folder of a build.")],
    near: Annotated[
        bool, typer.Option("--near", help="Also look for pictures that look alike, where roots are given.")
    ] = False,
    root: RootOptions = None,
    threshold: Annotated[int, typer.Option(help="With --near: greatest distance in bits of 128.")] = 24,
    manifests: Manifests = None,
    workers: Annotated[int, typer.Option(min=1, help="With --near: processes that read images.")] = 1,
    json: Json = False,
) -> int:
    """List every leak between a benchmark's groups: classes, ancestry, identical and look-alike pictures.

    Exit code 1 where a leak is found that the manifest does not record, or one recorded is not found; the
    look-alikes of --near are for a person to judge and never change the exit code.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.checks.leaks import report_leaks
    from wordnet_splits.duplicates.near_duplicates import near_duplicates
    from wordnet_splits.finding import load_manifest

    manifest = load_manifest(name, manifests)
    roots = parse_roots(root or [], manifest.own)
    exact = report_leaks(manifest)
    alike = None
    if near:
        alike = near_duplicates(manifest, roots, threshold=threshold, workers=workers, progress=OnStderr())
    if json:
        print_json({**exact.as_dict(), "near": alike.as_dict() if alike else None})
    else:
        _print_exact(exact)
        if alike:
            _print_near(alike)
    return DONE if exact.ok else NEGATIVE


def _print_exact(report: LeakReport) -> None:
    from wordnet_splits.checks.leaks import AS_RECORDED

    for leak in report.leaks:
        status = leak.severity if leak.status == AS_RECORDED else leak.status.upper()
        status += f": {leak.reason}" if leak.reason else ""
        between = f"within {leak.a}" if leak.a == leak.b else f"between {leak.a} and {leak.b}"
        to_stdout(f"{leak.kind} {between}: {len(leak.pairs):,}, {status}")
        for a, b in leak.pairs:
            to_stdout(f"  {a}" if a == b else f"  {a}  {b}")
    for row in report.unchecked:
        to_stdout(f"not compared by digest: {row['group']} {row['split']}: {row['why']}")
    left_out = f"{report.groups_not_compared:,} groups not compared"
    verdict = "all recorded" if report.ok else "NOT as the manifest records them"
    to_stdout(f"{report.name}: {report.exact:,} exact among what was compared, {left_out}; {verdict}")


def _print_near(report: NearReport) -> None:
    to_stdout()
    print_table(
        ("group", "split", "source", "images", "compared", "why not all"),
        [(c.group, c.split, c.source, c.images, c.compared, c.why or None) for c in report.compared],
        right=("images", "compared"),
    )
    shown: dict[tuple[str, str, str, str], int] = {}
    counts = report.counts()
    for p in report.pairs:
        key = (p.group_a, p.split_a, p.group_b, p.split_b)
        if key not in shown:
            mark = "" if p.guarded else " (two test sets)"
            to_stdout()
            to_stdout(f"{p.group_a} {p.split_a} and {p.group_b} {p.split_b}{mark}: {counts[key]:,} pairs")
        shown[key] = shown.get(key, 0) + 1
        if shown[key] <= SHOWN_PAIRS:
            to_stdout(f"  {p.distance:3}  {p.image_a}  {p.image_b}")
        elif shown[key] == SHOWN_PAIRS + 1:
            to_stdout(f"  and {counts[key] - SHOWN_PAIRS:,} more (--json has all)")
    to_stdout()
    to_stdout(f"{len(report.pairs):,} pairs look alike (at most {report.threshold} of 128 bits apart)")
    print_first([_problem_line(p) for p in report.problems], SHOWN_PROBLEMS)


def _problem_line(problem: Problem) -> str:
    return f"  {problem.kind}: {problem.source}:{problem.image_id}: {problem.detail}"


def join_copies(
    a: Annotated[str, typer.Argument(metavar="SOURCE-A", help="A copy, such as openood-cifar10.")],
    b: Annotated[str, typer.Argument(metavar="SOURCE-B", help="Another, such as cifar10.")],
    by: Annotated[
        str, typer.Option(metavar="WAY", help="evidence (a rule, pixels), or position: a guess, marked so.")
    ] = "evidence",
    root: RootOptions = None,
    out: Annotated[Path | None, typer.Option(help="Write the table here: .csv or .parquet.")] = None,
    workers: Workers = 1,
    json: Json = False,
) -> int:
    """Find which image of one copy of a dataset is which of another, by rule or by pixels.

    `--by position` takes image n for the n-th of its class with the publisher, which nobody has verified.

    Exit code 1 where nothing is joined, 3 where an image of SOURCE-A is not.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.duplicates.join import join

    way = cast("By", by)  # join refuses what is none
    found = join(a, b, by=way, roots=parse_roots(root or []), workers=workers, progress=OnStderr())
    if out is not None:
        found.write(out)
    if json:
        print_json(found.as_dict())
    else:
        _print_join(found)
    if not found.pairs:
        return NEGATIVE
    return DONE if found.complete else LEFT_OUT


def _print_join(found: Join) -> None:
    ambiguous = (
        f" ({found.ambiguous:,} of equal pictures, in the order of their ids)" if found.ambiguous else ""
    )
    to_stdout(f"{found.a} and {found.b}, {', '.join(found.splits)}: {found.reason}")
    to_stdout(f"  joined     {len(found.pairs):,}{ambiguous}{'' if found.verified else ', unverified'}")
    for name, left in ((found.a, found.unmatched_a), (found.b, found.unmatched_b)):
        such = f", such as {', '.join(left[:SHOWN_NAMES])}" if left else ""
        to_stdout(f"  unmatched  {len(left):,} of {name}{such}")
    print_first([_problem_line(p) for p in found.problems], SHOWN_PROBLEMS)


def cite_benchmark(
    benchmark: Annotated[str, typer.Argument(help="A benchmark, a recipe file, or a manifest's folder.")],
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Print BibTeX of a benchmark's paper, of WordNet, of every source and of this program."""
    from wordnet_splits.publishing.cite import cite

    found = cite(benchmark, manifests=manifests)
    if json:
        print_json(found.as_dict())
    else:
        for line in found.bibtex.splitlines():
            to_stdout(line)
    if found.unlisted:
        to_stderr(f"the recipe's paper, {found.unlisted!r}, is not among those known here: cite it yourself")
    return DONE
