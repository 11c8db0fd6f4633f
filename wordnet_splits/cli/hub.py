"""Commands for the Hugging Face Hub: hub publish, pull and croissant."""

from __future__ import annotations

from dataclasses import replace
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.terminal.options import (
    Json,
    Manifests,
    RootOptions,
    Workers,
)
from wordnet_splits.base.terminal.output import (
    DONE,
    NEGATIVE,
    print_lines,
    print_result,
    print_table,
    to_stderr,
    to_stdout,
    write_output,
)
from wordnet_splits.cli.main import app
from wordnet_splits.datasets.sources.roots import parse_roots

if TYPE_CHECKING:
    from wordnet_splits.benchmark.pulling import Pulled
    from wordnet_splits.hub.publish import Publication

SHOWN = 20
"""Files shown without --json."""


app.group(
    "hub", "Benchmarks published on the Hugging Face Hub, or as a folder with checksums.", heading="Publish"
)


@app.command(
    "hub publish",
    examples=[
        "wordnet-splits hub publish ORG/NAME build/digits --card-only",
        "wordnet-splits hub publish build/digits --out published",
    ],
)
def publish_benchmarks(
    repo: Annotated[
        str | None,
        typer.Argument(
            metavar="ORG/NAME", help="A dataset repository of the Hub; with --out a folder may stand here."
        ),
    ] = None,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="A benchmark's folder, or a folder of several with README.md; by default the frozen ones.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the files and SHA256SUMS into this folder instead of uploading them."
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(metavar="TAG", help="The tag of the commit, such as v1; a tag never moves.")
    ] = None,
    root: RootOptions = None,
    private: Annotated[
        bool, typer.Option("--private", help="Only its owners see a repository that this creates.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be sent.")] = False,
    card_only: Annotated[
        bool, typer.Option("--card-only", help="Only print the card, without network.")
    ] = False,
    leaderboard: Annotated[
        bool,
        typer.Option("--leaderboard/--no-leaderboard", help="Whether ORG/NAME gets eval.yaml, for the Hub."),
    ] = True,
    evaluation_framework: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Framework to name in eval.yaml, one that the Hub lists."),
    ] = None,
    workers: Workers = 1,
    json: Json = False,
) -> int:
    """Publish benchmarks that verify, with a card: as a dataset repository, or as a folder (--out).

    Only files that differ are sent. A folder is written in one step, and only over one that was published.

    The token is that of the Hub's own library: `hf auth login`, or the variable HF_TOKEN.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.manifest.loading import shipped_folder
    from wordnet_splits.benchmark.resolve import declarations_of
    from wordnet_splits.hub.card import card_of
    from wordnet_splits.hub.publish import publish, publish_folder
    from wordnet_splits.hub.release import collect_release, folders_at
    from wordnet_splits.remote import Address, parse_address

    if out is not None and repo is not None and (first := Path(repo)).is_dir():
        repo, folders = None, [first, *(folders or [])]
    if repo is None and out is None:
        raise SplitsError("nothing says where to publish", hint="give a repository, ORG/NAME, or --out DIR")
    address = None if repo is None else parse_address(repo, where="ORG/NAME")
    if address is not None and address != Address(address.repo):
        hint = f"give {address.repo}, and the tag with --revision"
        raise SplitsError("expected a repository alone, without tag or benchmark", where=repo, hint=hint)
    if revision is not None and address is None:
        raise SplitsError("a folder has no tags", where="--revision", hint="leave it out, or give ORG/NAME")
    if revision is not None and parse_address(f"{repo}@{revision}", where="--revision").benchmark:
        raise SplitsError(f"{revision!r} is not a tag", where="--revision", hint="as in v1")
    folders = folders or [shipped_folder()]
    roots = parse_roots(root or [], declarations_of(*folders_at(folders)))
    release = collect_release(folders, roots=roots, workers=workers, progress=OnStderr())
    release = replace(release, leaderboard=leaderboard, framework=evaluation_framework)
    if card_only:
        card = card_of(release, address and Address(address.repo, revision or address.revision))
        result = {"card": card, "benchmarks": release.names}
        print_result(result, json, lambda: print_lines(card.splitlines()))
        return DONE
    if out is None:
        assert address is not None  # refused above
        publication = publish(address, release, tag=revision, private=private, dry_run=dry_run)
    else:
        named = address and Address(address.repo, revision or address.revision)
        publication = publish_folder(release, out, address=named, dry_run=dry_run)
    print_result(publication, json, lambda: _print_publication(publication, dry_run=dry_run))
    return DONE


def _print_publication(publication: Publication, *, dry_run: bool) -> None:
    from wordnet_splits.base.names import counted
    from wordnet_splits.benchmark.pulling import SUMS

    rows = [(row["path"], row["state"]) for row in publication.rows() if row["state"] != "same"]
    if rows:
        print_table(("file", "state"), rows[:SHOWN])
    if len(rows) > SHOWN:
        to_stderr(f"and {len(rows) - SHOWN:,} more (--json has all)")
    counts = (
        f"{len(getattr(publication, state)):,} {state}" for state in ("added", "changed", "removed", "same")
    )
    to_stdout(f"{counted(len(publication.benchmarks), 'benchmark')} verified; files: {', '.join(counts)}")
    if publication.not_compared:
        to_stdout(f"not compared with what is published: {publication.not_compared}")
        to_stdout(
            "so not known: which files differ, whether a tag or a version is taken, what would be removed"
        )
    if publication.sent:
        commit = f", commit {publication.commit}" if publication.commit else f", with {SUMS}"
        to_stdout(f"published as {publication.address}{commit}")
    elif dry_run and rows:
        to_stdout("nothing was sent: leave out --dry-run to publish")
    else:
        to_stdout(f"nothing was sent: {publication.address} holds this already")


@app.command(
    "hub pull",
    examples=[
        "wordnet-splits hub pull ORG/NAME@v1",
        "wordnet-splits hub pull ./published --out pulled",
    ],
)
def pull_benchmarks(
    repo: Annotated[
        str,
        typer.Argument(
            metavar="ORG/NAME[@TAG][/BENCHMARK]|./FOLDER",
            help="A dataset repository of the Hub, at a tag or its main branch; or a published folder.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder to put benchmarks into; by default one of the user's cache.")
    ] = None,
    json: Json = False,
) -> int:
    """Download published benchmarks; only those that verify without images are kept.

    Ctrl-C loses nothing: the same command continues where it stopped.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.benchmark.checks.verification import verify_received
    from wordnet_splits.benchmark.pulling import published_address, pull

    address = published_address(repo, where="ORG/NAME")
    pulled = pull(address, verify=verify_received, out=out, progress=OnStderr())
    print_result(pulled, json, lambda: _print_pulled(pulled, out))
    return DONE


def _print_pulled(pulled: Pulled, out: Path | None) -> None:
    from wordnet_splits.remote import is_address

    rows = [
        (
            row["benchmark"],
            row["version"],
            (row["fingerprint"] or "awaits a source")[:16],
            "with its tables and the shipped one" if row["as_shipped"] else "with its tables",
        )
        for row in pulled.rows()
    ]
    print_table(("benchmark", "version", "fingerprint", "compared"), rows, right=("version",))
    for name in pulled.dropped:
        to_stdout(f"removed {name}: it is no longer published there")
    to_stdout(f"commit {pulled.commit}; every fingerprint was recomputed, and the rules agree")
    name = pulled.benchmarks[0].name
    pulled_folder = out or (None if is_address(pulled.address) else pulled.folder)
    address = pulled_folder / name if pulled_folder else replace(pulled.address, benchmark=name)
    to_stdout(f"in {pulled.folder}; use one as {address}")


@app.command(
    "hub croissant",
    examples=[
        "wordnet-splits hub croissant digits",
        "wordnet-splits hub croissant digits --out digits.json",
        "wordnet-splits hub croissant digits --check",
    ],
)
def write_croissant(
    benchmark: Annotated[str, typer.Argument(help="A frozen benchmark, or a manifest's folder.")],
    out: Annotated[
        Path | None, typer.Option(help="A file to write, in the benchmark's folder; printed by default.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only list the responsible-AI fields that NeurIPS 2026 requires.")
    ] = False,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Write a benchmark's Croissant metadata with responsible-AI fields, as `hub publish` adds it.

    With --check, the exit code is 1 if a required field is absent; `[about]` of the recipe takes its text.
    """
    if check:
        return _check_croissant(benchmark, out, manifests, json)
    from wordnet_splits.base.files import write_text
    from wordnet_splits.benchmark.resolve import load_manifest
    from wordnet_splits.hub.croissant import croissant_of

    text = croissant_of(load_manifest(benchmark, manifests))
    write_output(out, lambda path: write_text(path, text))
    result = {"benchmark": benchmark, "out": None if out is None else str(out), "croissant": loads(text)}
    print_result(result, json, lambda: print_lines([] if out else text.splitlines()))
    return DONE


def _check_croissant(benchmark: str, out: Path | None, manifests: Path | None, json: bool) -> int:
    from wordnet_splits.benchmark.resolve import load_manifest
    from wordnet_splits.hub.responsible_ai import check_fields

    if out is not None:
        raise SplitsError("--check writes no file", where="--out", hint="leave one of them out")
    rows = check_fields(load_manifest(benchmark, manifests))
    absent = [row for row in rows if not row["present"]]

    def print_fields() -> None:
        cells = [(r["field"], "present" if r["present"] else "absent", r["about"] or "") for r in rows]
        print_table(("field", "state", "key in [about]"), cells)
        for row in absent:
            remedy = f": write `{row['about']}` in [about] of the recipe" if row["about"] else ""
            to_stderr(f"absent: {row['field']}{remedy}")

    result = {"benchmark": benchmark, "fields": rows, "absent": [row["field"] for row in absent]}
    print_result({**result, "ok": not absent}, json, print_fields)
    return NEGATIVE if absent else DONE
