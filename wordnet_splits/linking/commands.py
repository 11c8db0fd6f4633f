"""The command that links class names to synsets: catalog make."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.names import listed, printable
from wordnet_splits.base.terminal.options import (
    Declared,
    IdTable,
    Json,
    Language,
    WordNet,
)
from wordnet_splits.base.terminal.output import (
    DONE,
    LEFT_OUT,
    print_first,
    print_result,
    to_stderr,
    to_stdout,
)
from wordnet_splits.cli.main import app
from wordnet_splits.wordnet.taxonomy import load

if TYPE_CHECKING:
    from wordnet_splits.linking.catalog_maker import MadeCatalog
    from wordnet_splits.linking.classes import DatasetClasses
    from wordnet_splits.wordnet.taxonomy import Taxonomy


SHOWN_UNSURE = 20
SHOWN_SHARED = 5


@app.command(
    "catalog make",
    examples=[
        "wordnet-splits catalog make 'blue whale' 'sea otter' --out sea.tsv",
        "wordnet-splits catalog make dolphin seal whale --out mammals.tsv --ask-below 0",
    ],
)
def make_dataset_catalog(
    name: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Class names.")] = None,
    root: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A dataset in class folders, or with a dataset.toml.")
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Class names, one a line; after a tab its superclass."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE.tsv", help="The catalog to write.")] = Path(
        "catalog.tsv"
    ),
    declared: Declared = None,
    ask_below: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Ask below this confidence; by default 97% of the rest are right."),
    ] = None,
    language: Language = "en",
    ids: IdTable = None,
    wordnet: WordNet = None,
    json: Json = False,
) -> int:
    """Propose a synset for every class of a dataset, all names together; ask about the unsure ones.

    Answers are saved at once, and the same command continues where it stopped; rows whose `mapped` is `hand`
    stay as they are. Without a terminal unsure rows are listed, and the exit code is 3.
    """
    from wordnet_splits.linking.asking import ask_on_terminal, is_interactive
    from wordnet_splits.linking.catalog_maker import make_catalog

    classes, origin = _read_classes(name, root, names, declared)
    for note in classes.notes:
        to_stderr(note)
    taxonomy = _taxonomy(root, declared, wordnet)
    ask = ask_on_terminal if is_interactive() else None
    catalog = make_catalog(
        classes,
        out,
        ask=ask,
        ask_below=ask_below,
        taxonomy=taxonomy,
        origin=f"of {origin}",
        language=language,
        ids=ids,
    )
    print_result(
        catalog, json, lambda: _print_new_catalog(catalog, "synset" if taxonomy.is_wordnet else "node")
    )
    return LEFT_OUT if catalog.unsure else DONE


def _read_classes(
    name: list[str] | None, root: Path | None, names: Path | None, declared: Path | None
) -> tuple[DatasetClasses, str]:
    """Return the classes, and a description of their origin."""
    from wordnet_splits.benchmark.recipe import declaration_in
    from wordnet_splits.datasets.catalog.declarations import declare
    from wordnet_splits.linking.classes import classes_below, listed_classes, origin_of, read_names

    if [bool(name), root is not None, names is not None].count(True) != 1:
        raise SplitsError("give exactly one of class names, --root and --names", where="catalog make")
    if declared is not None and root is None:
        raise SplitsError("--declared only applies with --root", where="catalog make", hint="give --root DIR")
    if root is not None:
        if declared is None:
            return classes_below(root), origin_of(root)
        declaration = declaration_in(declared)
        declare(declaration)
        return classes_below(root, declaration.name), origin_of(root, declaration.name)
    if names is not None:
        return read_names(names), f"the names in {printable(names.name)}"
    return listed_classes(name or []), "names given"


def _taxonomy(root: Path | None, declared: Path | None, wordnet: str | None) -> Taxonomy:
    """Return the hierarchy given, else the declaration's that `_read_classes` registered, else WordNet."""
    from wordnet_splits.benchmark.recipe import declaration_in
    from wordnet_splits.datasets.catalog.declarations import LOCAL, declared_name

    name = declared_name(root) if root and declared is None else declared and declaration_in(declared).name
    own = LOCAL.by_name[name].hierarchy if name else None
    if own and wordnet is not None:
        problem = f"--wordnet cannot replace the hierarchy that {name} declares"
        raise SplitsError(problem, where="catalog make", hint="leave out --wordnet")
    return own.taxonomy() if own else load(wordnet)


def _print_new_catalog(catalog: MadeCatalog, noun: str) -> None:
    kinds = Counter(row.mapped or f"without {noun}" for row in catalog.decisions)
    counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
    to_stdout(f"{catalog.out}: {len(catalog.decisions):,} classes; {counts}; {catalog.asked:,} answered now")
    shared = [f"  {wnid}: {listed(ids, SHOWN_SHARED)}" for wnid, ids in catalog.shared.items()]
    if shared:
        to_stdout(f"{noun}s of several classes: {len(shared):,}")
        print_first(shared, SHOWN_SHARED, write=to_stdout)
    if catalog.unsure:
        rows = {row["class_id"]: row for row in catalog.rows()}
        lines = [
            f"  {i}: {rows[i]['wnid'] or f'no {noun}'} ({rows[i]['confidence']:.2f}), {rows[i]['reason']}"
            for i in catalog.unsure
        ]
        to_stdout(f"unsure; answer by the same command on a terminal, or in the file: {len(lines):,}")
        print_first(lines, SHOWN_UNSURE, write=to_stdout)
