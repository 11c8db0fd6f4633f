"""The dataset in a user's folder: its declaration, its catalog, and the inventory that freezes its images."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.authoring.drafting import bring_hierarchy
from wordnet_splits.base.errors import DataError, MissingImageError, OutputError, RecipeError, SourceError
from wordnet_splits.base.files import locked, write_bytes, write_text
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import counted
from wordnet_splits.base.parquet import read_table, write_table
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.text_formats import parse_toml
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.construct.digesting import read_digests
from wordnet_splits.benchmark.construct.population import count_difference
from wordnet_splits.benchmark.recipe import declared_by
from wordnet_splits.datasets.catalog import catalog_names, read_catalog
from wordnet_splits.datasets.catalog.declarations import (
    DECLARATION_FILE,
    Declaration,
    Sources,
    declare,
    declared_name,
    parse_declaration,
    read_declaration,
)
from wordnet_splits.datasets.catalog.inventory import INVENTORY_SCHEMA, MULTILABEL_SCHEMA
from wordnet_splits.datasets.catalog.own_hierarchy import OwnHierarchy
from wordnet_splits.datasets.sources import check_source, open_source
from wordnet_splits.datasets.sources.roots import Roots, resolve_root
from wordnet_splits.linking.asking import Ask
from wordnet_splits.linking.catalog_maker import make_catalog, was_made
from wordnet_splits.linking.classes import classes_below, origin_of
from wordnet_splits.wordnet.lexicons import ENGLISH
from wordnet_splits.wordnet.taxonomy import Taxonomy, load

SHOWN = 3
"""Examples in a line on a step."""


Report = Callable[[str], None]


@dataclass(frozen=True)
class Step(Jsonable):
    """A step: the command that repeats it, and its result in lines; without a command a file was written."""

    command: str
    result: Sequence[str]


class Steps:
    """The steps so far, each reported line by line as it begins and ends."""

    def __init__(self, report: Report | None) -> None:
        self.steps: list[Step] = []
        self._report = report or (lambda line: None)
        self._command = ""

    def begin(self, *words: object) -> None:
        """Begin the step of a command, given by its words."""
        self._command = shlex.join(["wordnet-splits", *map(str, words)])
        self._report(f"$ {self._command}")

    def end(self, *lines: str) -> None:
        """End the step with its result."""
        self.steps.append(Step(self._command, lines))
        self._command = ""
        for line in lines:
            self._report(f"  {line}")

    def say(self, *lines: str) -> None:
        """Report lines that belong to no step."""
        for line in lines:
            self._report(line)


def declare_folder(folder: Path, name: str, out: Path, steps: Steps, tree: Path | None = None) -> Path:
    """Return the file in ``out`` that declares the images of a folder, with a tree; write it if absent."""
    if name in catalog_names():
        raise RecipeError(f"{name!r} is the name of a shipped source", where="--name", hint="give another")
    file, earlier_name = out / DECLARATION_FILE, declared_name(out)
    own = None if tree is None else OwnHierarchy(file=tree.name).located(tree)
    if earlier_name is None:
        classes_below(folder)  # a folder without classes is refused before anything is written
        table = "" if own is None else f"\n{bring_hierarchy(own, out)}"
        write_text(file, f'name = "{name}"\nlayout = "folders"\ncatalog = "{name}.tsv"\n{table}')
        hint = f'if it has the classes, write layout = "csv" in {file} and run this again'
        tables = [f"{path.name} is not read: {hint}" for path in sorted(folder.glob("*.csv"))]
        steps.end(f"written: {file}, which declares the dataset {name}", *tables)
    elif earlier_name != name:
        raise OutputError(f"declares {earlier_name}, not {name}", where=str(file), hint="give another --out")
    elif own is not None and not ((earlier := read_declaration(file).hierarchy) and earlier.is_same(own)):
        raise OutputError("declares another hierarchy", where=str(file), hint="give another --out")
    return file


def copy_declaration(declaration: Declaration, folder: Path, out: Path, steps: Steps) -> Path:
    """Return the copy in ``out`` of a declaration, its catalog and its inventory; earlier copies stay."""
    file = out / DECLARATION_FILE
    if declaration.file.absolute() == file.absolute():
        return file
    text = declaration.as_toml(f"{declaration.name}.tsv")
    if not file.exists():
        declare(declaration)
        classes_below(folder, declaration.name)  # as in `declare_folder`
        copy = parse_declaration(parse_toml(text, where=str(file)), str(file)).located(file)
        for path, target in (
            (declaration.catalog_file, copy.catalog_file),
            (declaration.inventory_file, copy.inventory_file),
        ):
            if path.is_file() and not target.exists():
                write_bytes(target, path.read_bytes())
        write_text(file, text)
        steps.end(f"written: {file}, a copy of {declaration.file}")
    elif read_text(file) != text:
        hint = f"give another --out, or --declared {file}"
        raise OutputError(f"differs from {declaration.file}", where=str(file), hint=hint)
    return file


def make_folder_catalog(
    folder: Path,
    dataset: Declaration,
    declared: Path | None,
    ask: Ask | None,
    accept: bool,
    language: str,
    ids: Path | None,
    steps: Steps,
) -> Sequence[str]:
    """Make the catalog, unless another was written by hand; return the ids of its unconfirmed classes."""
    base = folder if declared is None else declared.parent
    path = base / dataset.catalog_file.relative_to(base.absolute())
    own = dataset.hierarchy
    taxonomy = load() if own is None else own.taxonomy()
    if path.exists() and not was_made(catalog := read_catalog(path, has_nodes=own is not None)):
        unsure = tuple(item.class_id for item in catalog if item.is_unconfirmed)
        lines = [f"{path} was not made by `catalog make`, and stays as it is"]
    else:
        flags = ["--declared", str(declared)] * (declared is not None)
        flags += ["--language", language] * (language != ENGLISH) + ["--ids", str(ids)] * (ids is not None)
        steps.begin("catalog", "make", "--root", folder, "--out", path, *flags)
        made = make_catalog(
            classes_below(folder, dataset.name),
            path,
            ask=ask,
            origin=f"of {origin_of(folder, dataset.name)}",
            language=language,
            ids=ids,
            taxonomy=taxonomy,
        )
        mapped, unsure = sum(bool(row.wnids) for row in made.decisions), made.unsure
        lines = [
            f"{path}: {counted(len(made.decisions), 'class')}, {mapped:,} with a {taxonomy.noun}, "
            f"{made.asked:,} answered now",
            *made.classes.notes,
            *_shared(list(made.shared.values()), taxonomy),
        ]
    steps.end(*lines, *_unsure(path, unsure, accept, taxonomy))
    return unsure


def _shared(classes: Sequence[Sequence[str]], taxonomy: Taxonomy) -> list[str]:
    """Return the line on classes with the same synset, such as a class that occurs in several domains."""
    if not classes:
        return []
    example = ", ".join(classes[0][:SHOWN]) + ", ..." * (len(classes[0]) > SHOWN)
    return [f"{counted(len(classes), taxonomy.noun)} shared by several classes, such as {example}"]


def _unsure(path: Path, unsure: Sequence[str], accept: bool, taxonomy: Taxonomy) -> list[str]:
    """Return lines on unconfirmed classes: the accepted answers, or the open questions."""
    if not unsure:
        return []
    catalog = read_catalog(path, has_nodes=not taxonomy.is_wordnet)
    rows = [catalog[class_id] for class_id in unsure]
    mapped = sum(bool(row.wnids) for row in rows)
    if accept:
        headings = [
            f"accepted without confirmation: {counted(mapped, taxonomy.noun)}; `freeze` and `hub publish` "
            f"need `hand` in place of `proposed` in {path}"
        ] * bool(mapped)
        without = len(rows) - mapped
        note = f"accepted without a {taxonomy.noun}, in no group: {counted(without, 'class')}"
        headings += [note] * bool(without)
    else:
        headings = [
            f"{counted(len(rows), 'class')} to be confirmed: by the same command on a terminal, in {path} "
            "(`hand` as `mapped`), or --accept to go on without"
        ]
    glosses = (" ".join(f"{w} ({taxonomy.first_definition(w)})" for w in row.wnids) for row in rows)
    return headings + [
        f"  {row.class_id}: {gloss or f'no {taxonomy.noun}'}; {row.why}"
        for row, gloss in zip(rows, glosses, strict=True)
    ]


@dataclass(frozen=True)
class MadeInventory(Jsonable):
    """A frozen inventory: images by split, and whether the file existed already with the ``same`` rows."""

    source: str
    out: Path
    images: Mapping[str, int]
    unexpected: Mapping[str, int]
    same: bool

    @property
    def sentence(self) -> str:
        """The file, the number of images by split, and whether it is new."""
        counts = ", ".join(f"{split} {count:,}" for split, count in self.images.items())
        return f"{self.out}: {counts}; {'as frozen before' if self.same else 'frozen'}"


def make_inventory(
    name: str,
    *,
    roots: Roots | None = None,
    declared: str | Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> MadeInventory:
    """Write the inventory of a declared dataset: all image ids by split, with digests.

    Parameters
    ----------
    roots : folder of its files; by default from the environment or ``roots.toml``.
    declared : file that declares the dataset if the data's folder does not: a ``dataset.toml``, or a recipe
        with ``[[source]]``.
    workers : processes that read images.

    Raises
    ------
    UnknownNameError : the source does not exist.
    SourceError : it is shipped, has no root, or differs from the counts of its catalog.
    MissingImageError : an image cannot be opened; inventories are always complete.
    OutputError : another inventory is frozen there, or it cannot be written.
    """
    datasets = Sources.of(declared_by(declared))
    root = resolve_root(name, roots, datasets)
    check_source(name, root, datasets)
    declaration = datasets.find(name)
    if declaration is None:
        raise SourceError(f"an inventory can only be made of a custom dataset, got the shipped source {name}")
    source = open_source(name, root, datasets)
    names = ("split", "image_id", "class_id")
    rows = sorted(
        row
        for batch in source.scan()
        for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    )
    catalog = source.catalog()
    for split in source.splits:
        counts = Counter(class_id for of_split, _, class_id in rows if of_split == split)
        if (difference := count_difference(catalog, split, counts)) is not None:
            raise SourceError(
                difference,
                where=str(source.root),
                hint="make the catalog again: wordnet-splits catalog make "
                f"--root {source.root} --out {declaration.catalog}",
            )
    out = declaration.inventory_file
    with locked(out, busy="another `sources inventory` is writing here"):
        classes = {image_id: class_id for _, image_id, class_id in rows}
        if len(classes) < len(rows):
            raise DataError("an image id is in two splits", where=str(source.root), hint="rename one")
        digests, problems = read_digests(source, classes, {}, workers=workers, progress=progress)
        if problems:
            problem = problems[0]
            raise MissingImageError(
                f"cannot freeze {len(problems):,} of {len(rows):,} images of {name}, such as "
                f"{problem.image_id}: {problem.detail}",
                where=str(source.root),
                hint="repair or remove them, then `catalog make` again",
            )
        columns: list[list[Any]] = [
            [image_id for _, image_id, _ in rows],
            [class_id for _, _, class_id in rows],
            [split for split, _, _ in rows],
            [digests[image_id] for _, image_id, _ in rows],
        ]
        if source.multilabel:
            columns.append([source.extra_classes.get(image_id, ()) for _, image_id, _ in rows])
        table = pa.table(columns, schema=MULTILABEL_SCHEMA if source.multilabel else INVENTORY_SCHEMA)
        same = out.exists()
        if same and not read_table(out).equals(table):
            raise OutputError(
                "another inventory is frozen here",
                where=str(out),
                hint="remove it to freeze again",
            )
        if not same:
            write_table(table, out)
    images = Counter(split for split, _, _ in rows)
    return MadeInventory(name, out, dict(images), source.unexpected, same)
