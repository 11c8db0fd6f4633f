"""A benchmark from a folder of images: catalog, inventory, threshold, recipe, build, verification, pages.

Each step is a command of its own; this module runs them one after another.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordnet_splits.audit.class_list import load_class_list
from wordnet_splits.audit.thresholds import BalancedThreshold, Thresholds, thresholds
from wordnet_splits.authoring.make_inventory import make_inventory
from wordnet_splits.authoring.new_recipe import check_new_name, new_recipe
from wordnet_splits.base.errors import DataError, OutputError, RecipeError
from wordnet_splits.base.files import write_bytes, write_text
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import counted
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import text_table
from wordnet_splits.base.text_formats import parse_toml
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import GroupRow
from wordnet_splits.benchmark.recipe import declaration_in
from wordnet_splits.benchmark.recipe.drafting import parse_group
from wordnet_splits.benchmark.resolve import is_path, load_manifest
from wordnet_splits.datasets.catalog import catalog_names, load_catalog, read_catalog
from wordnet_splits.datasets.catalog.declarations import (
    DECLARATION_FILE,
    LOCAL,
    Declaration,
    declare,
    declared_name,
    parse_declaration,
    read_declaration,
    register_declaration,
)
from wordnet_splits.datasets.catalog.table import known_sources
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.explorer import make_site
from wordnet_splits.linking.catalog_maker import Ask, make_catalog, was_made
from wordnet_splits.linking.class_names import without_accents
from wordnet_splits.linking.classes import classes_below, origin_of
from wordnet_splits.linking.languages import ENGLISH
from wordnet_splits.wordnet.taxonomy import load

MEASURE = "mean"
SHOWN_PROBLEMS = 3
KNOWN_HINT = "or a source, as in imagenet1k; a folder with a dataset.toml is one by --root NAME=FOLDER"
Report = Callable[[str], None]


@dataclass(frozen=True)
class Step(Jsonable):
    """A step: the command that repeats it, and its result in lines; without a command a file was written."""

    command: str
    result: Sequence[str]


@dataclass(frozen=True)
class FolderBenchmark(Jsonable):
    """A benchmark made from a folder, or the steps completed before an early stop.

    Attributes
    ----------
    unsure : ids of classes with unconfirmed synsets; without ``accept`` any such class stops the run.
    threshold : the chosen threshold, with sizes and margins; None after an earlier stop.
    verified : whether the build agrees with its rules and images; None after an earlier stop.
    page : the first page of the site; None after an earlier stop.
    """

    name: str
    out: Path
    steps: Sequence[Step]
    unsure: Sequence[str]
    threshold: BalancedThreshold | None = None
    verified: bool | None = None
    page: Path | None = None


class _Steps:
    """The steps so far, each reported line by line as it begins and ends."""

    def __init__(self, report: Report | None) -> None:
        self.steps: list[Step] = []
        self._report = report or (lambda line: None)
        self._command = ""

    def begin(self, *words: object) -> None:
        self._command = shlex.join(["wordnet-splits", *map(str, words)])
        self._report(f"$ {self._command}")

    def end(self, *lines: str) -> None:
        self.steps.append(Step(self._command, lines))
        self._command = ""
        for line in lines:
            self._report(f"  {line}")


def make_benchmark(
    folder: str | Path,
    out: str | Path,
    *,
    known: str,
    of: str | None = None,
    name: str | None = None,
    accept: bool = False,
    ask: Ask | None = None,
    language: str = ENGLISH,
    ids: Path | None = None,
    roots: Roots | None = None,
    declared: Path | None = None,
    workers: int = 1,
    report: Report | None = None,
    progress: Progress | None = None,
) -> FolderBenchmark:
    """Make the classes of a folder into the near and far classes of a benchmark, and explain each step.

    The same call continues where an earlier one stopped.

    Parameters
    ----------
    folder : images in class folders, or in another layout that a ``dataset.toml`` there declares. The only
        files written there are a catalog and an inventory, if ``dataset.toml`` places them there.
    out : folder for the declaration, catalog and inventory, the recipe, the build and the pages; not below
        ``folder``.
    known : the ID classes: ``SOURCE``, ``SOURCE:CLASS,CLASS``, or a file of classes.
    of : the source of the classes in that file; by default the folder.
    name : name of the benchmark, and of the dataset if it is not declared; by default the folder's.
    accept : go on with synsets that are unsure; they stay unconfirmed, so that `freeze` refuses the build.
    ask : function that asks a person about an unsure class, as of `make_catalog`.
    language, ids : the language of the class names, and a table of identifiers, as of `make_catalog`.
    roots : folder of the source of the ID classes, if it is at hand.
    declared : file that declares the dataset if ``folder`` does not contain one: a ``dataset.toml``, or a
        recipe with ``[[source]]``. It is copied to ``out``, with its catalog and inventory if there are any.
    report : function that receives each line on the progress of the steps.

    Raises
    ------
    SourceError, DataError : the dataset lacks classes, every class lacks a synset, or every threshold leaves
        the near or the far group empty.
    TaxonomyError, MissingPackageError : the language cannot be read.
    UnknownNameError : the source or class does not exist.
    OutputError : ``out`` is below ``folder``, another recipe is there, or a file cannot be written.
    """
    folder, out, steps = Path(folder), Path(out), _Steps(report)
    if out.resolve().is_relative_to(folder.resolve()):
        raise OutputError("is in the folder of the pictures", where=str(out), hint="give another --out")
    declaration = None if declared is None else declaration_in(declared)
    dataset_name = declared_name(folder) if declaration is None else declaration.name
    name = name or dataset_name or _as_name(folder.resolve().name)
    check_new_name(name)
    file, source = _known_source(known, of, dataset_name or name)
    if source != (dataset_name or name):  # a wrong one is refused before anything is written or asked
        _KnownClasses.parse(known, file, source)
    if declaration is not None:
        beside = _copy_declaration(declaration, folder, out, steps)
    elif dataset_name is None:
        beside = _declare(folder, name, out, steps)
    else:
        beside = None
        register_declaration(folder, dataset_name)
    dataset_name = dataset_name or name
    if beside is not None:
        declare(read_declaration(beside))
    dataset = LOCAL.by_name[dataset_name]
    unsure = _catalog(folder, dataset, beside, ask, accept, language, ids, steps)
    if unsure and not accept:
        return FolderBenchmark(name, out, steps.steps, unsure)
    known_classes = _KnownClasses.parse(known, file, source)
    of_known = {n: r for n, r in (roots or {}).items() if n == known_classes.source}
    used_roots: dict[str, Path | str] = {**of_known, dataset.name: folder}
    return _make(name, out, dataset, beside, known_classes, used_roots, unsure, steps, workers, progress)


def _make(
    name: str,
    out: Path,
    dataset: Declaration,
    declared: Path | None,
    known_classes: _KnownClasses,
    used_roots: Mapping[str, Path | str],
    unsure: Sequence[str],
    steps: _Steps,
    workers: int,
    progress: Progress | None,
) -> FolderBenchmark:
    """Take the steps after the catalog."""
    flags = [word for n, r in used_roots.items() for word in ("--root", f"{n}={r}")]
    declared_flags = [*flags, *(() if declared is None else ("--declared", declared))]

    steps.begin("inventory", "make", dataset.name, *declared_flags)
    inventory = make_inventory(dataset.name, roots=used_roots, workers=workers, progress=progress)
    images = ", ".join(f"{split} {count:,}" for split, count in inventory.images.items())
    steps.end(f"{inventory.out}: {images}; {'as frozen before' if inventory.same else 'frozen'}")

    against, of_list = known_classes.against(out / f"{name}.known.txt")
    of_flags = [] if of_list is None else ["--of", of_list]
    steps.begin("thresholds", dataset.name, "--against", against, *of_flags, *declared_flags)
    counts = thresholds(dataset.name, against, measure=MEASURE, of=of_list)
    chosen = counts.balanced
    if chosen is None:
        raise _no_threshold(counts, dataset)
    steps.end(*_sizes_by_threshold(counts, chosen), chosen.sentence)

    path = out / f"{name}.toml"
    bound = f"{dataset.name}:{MEASURE}={np.format_float_positional(chosen.threshold)}"
    groups = ("--id", known_classes.text, "--near", bound, "--far", bound)
    steps.begin("new", name, *groups, *declared_flags, "--out", path)
    recipe = new_recipe(
        name, path, known=known_classes.text, near=[bound], far=[bound], roots=used_roots, resume=True
    )
    evidence = [f"{row['class_id']}: {row['evidence']}; margin {row['margin']}" for row in recipe.evidence]
    steps.end(*_group_sizes(recipe.groups), *evidence, *recipe.overlaps, *recipe.left_out, *recipe.notes)

    steps.begin("build", path, *flags, "--out", out)
    build = build_benchmark(path, roots=used_roots, out=out, workers=workers, progress=progress)
    built = out / name
    steps.end(f"{built}: {'complete' if build.manifest.complete else 'a source is awaited'}")

    steps.begin("verify", built, *flags)
    verification = verify_benchmark(
        load_manifest(built, check="none"), roots=used_roots, workers=workers, progress=progress
    )
    problems = [f"{p.kind}: {p.detail}" for p in verification.problems[:SHOWN_PROBLEMS]]
    steps.end(*(problems or ["agrees with its rules and the pictures"]))

    pages = out / "site" / name
    steps.begin("site", built, "--out", pages)
    site = make_site(pages, [built], progress=progress)
    page = site.out / "index.html"
    steps.end(f"open {page}")
    return FolderBenchmark(name, out, steps.steps, unsure, chosen, verification.ok, page)


def _as_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", without_accents(text).lower()).strip("-")


def _declare(folder: Path, name: str, out: Path, steps: _Steps) -> Path:
    """Return the file in ``out`` that declares the images of a folder; write it if it is absent."""
    if name in catalog_names():
        raise RecipeError(f"{name!r} is the name of a shipped source", where="--name", hint="give another")
    file, earlier_name = out / DECLARATION_FILE, declared_name(out)
    if earlier_name is None:
        classes_below(folder)  # a folder without classes is refused before anything is written
        write_text(file, f'name = "{name}"\nlayout = "folders"\ncatalog = "{name}.tsv"\n')
        hint = f'if it has the classes, write layout = "csv" in {file} and run this again'
        tables = [f"{path.name} is not read: {hint}" for path in sorted(folder.glob("*.csv"))]
        steps.end(f"written: {file}, which declares the dataset {name}", *tables)
    elif earlier_name != name:
        raise OutputError(f"declares {earlier_name}, not {name}", where=str(file), hint="give another --out")
    return file


def _copy_declaration(declaration: Declaration, folder: Path, out: Path, steps: _Steps) -> Path:
    """Return the copy in ``out`` of a declaration, its catalog and its inventory; earlier copies stay."""
    file = out / DECLARATION_FILE
    if declaration.file.absolute() == file.absolute():
        return file
    text = declaration.as_toml(f"{declaration.name}.tsv")
    if not file.exists():
        declare(declaration)
        classes_below(folder, declaration.name)  # as in `_declare`
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


def _catalog(
    folder: Path,
    dataset: Declaration,
    declared: Path | None,
    ask: Ask | None,
    accept: bool,
    language: str,
    ids: Path | None,
    steps: _Steps,
) -> Sequence[str]:
    """Make the catalog, unless another was written by hand; return the ids of its unconfirmed classes."""
    base = folder if declared is None else declared.parent
    path = base / dataset.catalog_file.relative_to(base.absolute())
    if path.exists() and not was_made(catalog := read_catalog(path)):
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
        )
        mapped, unsure = sum(bool(row.wnids) for row in made.decisions), made.unsure
        lines = [
            f"{path}: {counted(len(made.decisions), 'class')}, {mapped:,} with a synset, "
            f"{made.asked:,} answered now",
            *made.classes.notes,
            *_shared(list(made.shared.values())),
        ]
    steps.end(*lines, *_unsure(path, unsure, accept))
    return unsure


def _shared(classes: Sequence[Sequence[str]]) -> list[str]:
    """Return the line on classes with the same synset, such as a class that occurs in several domains."""
    if not classes:
        return []
    example = ", ".join(classes[0][:SHOWN_PROBLEMS]) + ", ..." * (len(classes[0]) > SHOWN_PROBLEMS)
    return [f"{counted(len(classes), 'synset')} of several classes, such as that of {example}"]


def _unsure(path: Path, unsure: Sequence[str], accept: bool) -> list[str]:
    """Return lines on unconfirmed classes: the accepted answers, or the open questions."""
    if not unsure:
        return []
    taxonomy, catalog = load(), read_catalog(path)
    rows = [catalog[class_id] for class_id in unsure]
    mapped = sum(bool(row.wnids) for row in rows)
    if accept:
        headings = [
            f"accepted without confirmation: {counted(mapped, 'synset')}; `freeze` and `hub publish` refuse "
            f"the benchmark until {path} says `hand` for `proposed` there"
        ] * bool(mapped)
        without = len(rows) - mapped
        headings += [f"accepted without a synset, so in no group: {counted(without, 'class')}"] * bool(
            without
        )
    else:
        headings = [
            f"{counted(len(rows), 'class')} to be confirmed on a terminal by the same command, or in {path} "
            "(`hand` as `mapped`); --accept goes on without"
        ]
    glosses = (" ".join(f"{w} ({taxonomy.first_definition(w)})" for w in row.wnids) for row in rows)
    return headings + [
        f"  {row.class_id}: {gloss or 'no synset'}; {row.why}"
        for row, gloss in zip(rows, glosses, strict=True)
    ]


def _known_source(known: str, of: str | None, dataset: str) -> tuple[Path | None, str]:
    """Return the file that lists the ID classes, if it is one, and the source of these classes."""
    path, source = Path(known), known.partition(":")[0]
    if source not in known_sources() and (path.is_file() or is_path(source) or Path(source).suffix):
        if not path.is_file():
            raise DataError("no such file of classes", where=known, hint=KNOWN_HINT)
        return path, of or dataset
    if of is not None:
        raise RecipeError("--of is for a file of classes", where="--known", hint="leave it out")
    return None, source


@dataclass(frozen=True)
class _KnownClasses:
    """The ID classes: a source, the selected classes (empty for all), and the file that lists them."""

    source: str
    classes: tuple[str, ...]
    file: Path | None = None

    @classmethod
    def parse(cls, known: str, file: Path | None, source: str) -> _KnownClasses:
        """Return the classes of a file, ``SOURCE`` or ``SOURCE:CLASS,CLASS``."""
        if file is not None:
            listed = load_class_list(file, load(), of=source)
            return cls(source, tuple(item.id for item in listed.classes), file)
        group = parse_group(known, where="--known")
        if group.draw is not None or group.bound is not None:
            raise RecipeError(
                f"{known!r} names no classes", where="--known", hint="as in imagenet1k, or cifar100:fox,wolf"
            )
        catalog = load_catalog(source)
        return cls(source, tuple(catalog[class_id].class_id for class_id in group.classes))

    @property
    def text(self) -> str:
        """The classes as `new_recipe` takes them."""
        if bad := [class_id for class_id in self.classes if "," in class_id]:
            hint = f"write the recipe with `new` for another class, and put {bad[0]!r} into it"
            raise RecipeError(f"the class {bad[0]!r} has a comma in its name", where="--known", hint=hint)
        return f"{self.source}:{','.join(self.classes)}" if self.classes else self.source

    def against(self, list_path: Path) -> tuple[str, str | None]:
        """Return the list for `thresholds` and the source of its entries; ``list_path`` may be written."""
        if not self.classes:
            return self.source, None
        if self.file is None:
            write_text(list_path, "\n".join(self.classes) + "\n")
        return str(self.file or list_path), self.source


def _no_threshold(counts: Thresholds, dataset: Declaration) -> DataError:
    """Return the error for classes that no threshold divides into near and far."""
    rows = counts.rows()
    kin = sum(row["relation"] is not None for row in rows)
    unmapped = sum(row["value"] is None for row in rows)
    if rows and unmapped == len(rows):
        what, hint = f"none of {counted(len(rows), 'class')} has a synset", "map some by hand"
    else:
        what = (
            f"no threshold gives both near and far classes: {counts.equal:,} equal a known class, {kin:,} "
            f"are above or below one, {unmapped:,} have no synset, and {len(rows) - kin - unmapped:,} remain"
        )
        hint = "give other classes, or other known ones"
    return DataError(what, where=str(dataset.catalog_file), hint=hint)


def _sizes_by_threshold(counts: Thresholds, chosen: BalancedThreshold) -> Sequence[str]:
    columns = ("threshold", "near", "far", "")
    rows = [
        [f"{row['threshold']:g}", *(f"{row[name]:,.0f}" for name in columns[1:3]), mark]
        for row in counts.counts(sorted({*counts.summary(), chosen.threshold}))
        for mark in ["chosen" if row["threshold"] == chosen.threshold else ""]
    ]
    return text_table(columns, rows, right=columns[:3], width=None)[0]


def _group_sizes(groups: Sequence[GroupRow]) -> list[str]:
    sizes: dict[str, list[str]] = {}
    for row in groups:
        noun = "class" if row.split == "classes" else f"{row.split} image"
        count = row.actual if row.actual is not None else row.expected
        size = f"an unknown number of {row.split} images" if count is None else counted(count, noun)
        sizes.setdefault(f"{row.group} ({row.role})", []).append(size)
    return [f"{group}: {', '.join(parts)}" for group, parts in sizes.items()]
