"""The options that the programs share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from wordnet_splits.base.errors import SplitsError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
RootOptions = Annotated[
    list[str] | None,
    typer.Option("--root", metavar="NAME=DIR", help="Folder of a source's files; repeatable."),
]
Declared = Annotated[
    Path | None,
    typer.Option(
        "--declared",
        metavar="FILE",
        help="Declaration of your dataset, if not next to it: a dataset.toml or a recipe.",
        exists=True,
        dir_okay=False,
    ),
]
Manifests = Annotated[
    Path | None, typer.Option(help="Folder of frozen manifests.", exists=True, file_okay=False)
]
Workers = Annotated[
    int, typer.Option(min=1, help="Processes, which read images or, without roots, do whole benchmarks.")
]
AllowMissing = Annotated[
    bool,
    typer.Option("--allow-missing", help="Leave out images that a root lacks, and exit with code 3."),
]
Local = Annotated[
    bool,
    typer.Option("--local", help="Draw from the images of a root; the result is NAME@local, never frozen."),
]
BenchmarkOption = Annotated[str, typer.Option(help="A frozen benchmark, or the folder of a manifest.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1; a GPU by default if there is one.")]
WordNet = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Another hierarchy than the embedded WordNet 3.0: a custom one (tree.tsv), a lexicon of the "
        "package wn (oewn:2024), a folder of WNDB files, or nltk.",
    ),
]
Language = Annotated[
    str,
    typer.Option(
        metavar="CODE|FILE.xml",
        help="Language of the class names: one of which the package wn has a lexicon, or a file of WN-LMF.",
    ),
]
IdTable = Annotated[
    Path | None,
    typer.Option(metavar="MAP.tsv", help="Synsets of names or identifiers: on each line both, with a tab."),
]
Cut = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Edges from a set's least common subsumer down to its subtrees; by default as few as leave at "
        "most a fifth of the classes in a subtree.",
    ),
]
OnlyGroups = Annotated[list[str] | None, typer.Option("--group", help="Only this group; repeatable.")]
OnlySplits = Annotated[list[str] | None, typer.Option("--split", help="Only this split; repeatable.")]
PackedOption = Annotated[
    list[Path] | None,
    typer.Option("--packed", help="A store of `wordnet-splits pack`; repeatable."),
]


def refuse_options(context: typer.Context, names: Iterable[str], reason: str) -> None:
    """Raise SplitsError for options of the command line that do not apply; ``reason`` follows their name."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise SplitsError(f"--{name.replace('_', '-')} {reason}", where=context.command_path)
