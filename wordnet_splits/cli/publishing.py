"""Commands between benchmarks here and the Hugging Face Hub: publish, pull, croissant."""

from __future__ import annotations

from dataclasses import replace
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.sources.roots import parse_roots
from wordnet_splits.terminal.options import Json, Manifests, RootOptions, Workers, add_command
from wordnet_splits.terminal.output import DONE, print_json, print_table, to_stderr, to_stdout

if TYPE_CHECKING:
    from wordnet_splits.publishing.publish import Publication

SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    examples = ["wordnet-splits publish ORG/NAME build/digits --card-only"]
    examples += ["wordnet-splits publish ORG/NAME build/digits --dry-run"]
    add_command(app, "publish", publish_benchmarks, examples)
    examples = ["wordnet-splits pull ORG/NAME@v1", "wordnet-splits pull ORG/NAME@v1/digits --out pulled"]
    add_command(app, "pull", pull_benchmarks, examples)
    examples = [
        "wordnet-splits croissant digits",
        "wordnet-splits croissant digits --out digits.json",
    ]
    add_command(app, "croissant", write_croissant, examples)


def publish_benchmarks(
    repo: Annotated[str, typer.Argument(metavar="ORG/NAME", help="A dataset repository of the Hub.")],
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            exists=True,
            file_okay=False,
            help="A benchmark's folder, or a folder of such with README.md; by default the frozen ones.",
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(metavar="TAG", help="The tag that it gets, such as v1; a tag never moves.")
    ] = None,
    root: RootOptions = None,
    private: Annotated[
        bool, typer.Option("--private", help="A repository that is made now is seen by its owners alone.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be sent.")] = False,
    card_only: Annotated[
        bool, typer.Option("--card-only", help="Only print the card; nothing is asked of the Hub.")
    ] = False,
    workers: Workers = 1,
    json: Json = False,
) -> int:
    """Publish benchmarks that verify as a dataset repository, with its card: only files that differ are sent.

    The token is that of the Hub's own library: `hf auth login`, or the variable HF_TOKEN.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.hub.address import Address, parse_address
    from wordnet_splits.manifest.shipped import shipped_folder
    from wordnet_splits.publishing.card import card_of
    from wordnet_splits.publishing.publish import publish
    from wordnet_splits.publishing.release import folders_at, gather
    from wordnet_splits.recipe import declarations_of

    address = parse_address(repo, where="ORG/NAME")
    if address != Address(address.repo):
        raise SplitsError("a repository alone is published to", where=repo, hint=f"as in {address.repo}")
    if revision is not None and parse_address(f"{repo}@{revision}", where="--revision").benchmark:
        raise SplitsError(f"{revision!r} is no tag", where="--revision", hint="as in v1")
    places = folders or [shipped_folder()]
    roots = parse_roots(root or [], declarations_of(*folders_at(places)))
    release = gather(places, roots=roots, workers=workers, progress=OnStderr())
    if card_only:
        card = card_of(release, Address(address.repo, revision or address.revision))
        if json:
            print_json({"card": card, "benchmarks": release.names})
        else:
            for line in card.splitlines():
                to_stdout(line)
        return DONE
    publication = publish(address, release, tag=revision, private=private, dry_run=dry_run)
    if json:
        print_json(publication.as_dict())
    else:
        _print_publication(publication, dry_run=dry_run)
    return DONE


def _print_publication(publication: Publication, *, dry_run: bool) -> None:
    from wordnet_splits.rules.evidence import counted

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
        to_stdout(f"published as {publication.address}, commit {publication.commit}")
    elif dry_run and rows:
        to_stdout("nothing was sent: leave out --dry-run to publish")
    else:
        to_stdout(f"nothing was sent: {publication.address} holds this already")


def pull_benchmarks(
    repo: Annotated[
        str,
        typer.Argument(
            metavar="ORG/NAME[@TAG][/BENCHMARK]",
            help="A dataset repository of the Hub, at a tag or its main branch.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder to put benchmarks into; by default one of the user's cache.")
    ] = None,
    json: Json = False,
) -> int:
    """Take benchmarks from the Hub, each only after it verifies as `verify` does it without pictures.

    Ctrl-C loses nothing: the same command goes on where it stopped.
    """
    from wordnet_splits.base.progress import OnStderr
    from wordnet_splits.hub.address import parse_address
    from wordnet_splits.hub.pulling import pull

    found = pull(parse_address(repo, where="ORG/NAME"), out=out, progress=OnStderr())
    if json:
        print_json(found.as_dict())
        return DONE
    rows = [
        (
            row["benchmark"],
            row["version"],
            (row["fingerprint"] or "awaits a source")[:16],
            _held(row["as_shipped"]),
        )
        for row in found.rows()
    ]
    print_table(("benchmark", "version", "fingerprint", "compared"), rows, right=("version",))
    for name in found.dropped:
        to_stdout(f"removed {name}: the repository no longer holds it")
    to_stdout(f"commit {found.commit}; every fingerprint was recomputed, and the rules give the same again")
    name = found.benchmarks[0].name
    to_stdout(
        f"in {found.folder}; use one as {out / name if out else replace(found.address, benchmark=name)}"
    )
    return DONE


def _held(as_shipped: bool) -> str:
    return "with its tables and the shipped one" if as_shipped else "with its tables"


def write_croissant(
    benchmark: Annotated[str, typer.Argument(help="A frozen benchmark, or a manifest's folder.")],
    out: Annotated[
        Path | None, typer.Option(help="A file to write, in the benchmark's folder; printed by default.")
    ] = None,
    manifests: Manifests = None,
    json: Json = False,
) -> int:
    """Write a benchmark's Croissant metadata, with responsible-AI fields: what `publish` puts beside it."""
    from wordnet_splits.base.files import write_text
    from wordnet_splits.finding import load_manifest
    from wordnet_splits.publishing.croissant import croissant_of

    text = croissant_of(load_manifest(benchmark, manifests))
    if out is not None:
        write_text(out, text)
        to_stderr(f"written to {out}")
    if json:
        print_json(
            {"benchmark": benchmark, "out": None if out is None else str(out), "croissant": loads(text)}
        )
    elif out is None:
        for line in text.splitlines():
            to_stdout(line)
    return DONE
