"""A benchmark from a folder of images: catalog, inventory, threshold, recipe, build, verification, pages.

Each step is a command of its own; this module runs them one after another.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordnet_splits.audit.class_list import hierarchy_of_lists, load_class_list
from wordnet_splits.audit.thresholds import BalancedThreshold, Thresholds, thresholds
from wordnet_splits.authoring.drafting import TRAIN, parse_group
from wordnet_splits.authoring.folder_dataset import (
    SHOWN,
    Report,
    Step,
    Steps,
    copy_declaration,
    declare_folder,
    make_folder_catalog,
    make_inventory,
)
from wordnet_splits.authoring.new_recipe import check_new_name, new_recipe
from wordnet_splits.authoring.verdict import BenchmarkVerdict, judge_benchmark
from wordnet_splits.base.errors import DataError, OutputError, RecipeError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import counted
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import text_table
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import GroupRow
from wordnet_splits.benchmark.recipe import declaration_in, load_recipe
from wordnet_splits.benchmark.resolve import is_path, load_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.declarations import (
    LOCAL,
    Declaration,
    declare,
    declared_name,
    read_declaration,
    register_declaration,
)
from wordnet_splits.datasets.catalog.table import known_sources
from wordnet_splits.datasets.sources.layouts.conventions import parse_split
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.explorer import make_site
from wordnet_splits.linking.asking import Ask
from wordnet_splits.linking.class_names import without_accents
from wordnet_splits.wordnet.lexicons import ENGLISH

MEASURE = "mean"
KNOWN_HINT = "or a source, as in imagenet1k; a folder with a dataset.toml is one by --root NAME=FOLDER"


@dataclass(frozen=True)
class FolderBenchmark(Jsonable):
    """A benchmark made from a folder, or the steps completed before an early stop.

    ``unsure`` : ids of classes with unconfirmed synsets; without ``accept`` any such class stops the run.
    ``verified`` : whether the build agrees with its rules and images. ``verdict`` : the sets, how far their
    roles hold, and the differences that the benchmark can show. The last four are None after a stop.
    """

    name: str
    out: Path
    steps: Sequence[Step]
    unsure: Sequence[str]
    threshold: BalancedThreshold | None = None
    verified: bool | None = None
    page: Path | None = None
    verdict: BenchmarkVerdict | None = None


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
    hierarchy: str | Path | None = None,
    train: bool = True,
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
    hierarchy : file of a tree that decides in place of WordNet, for a folder without a ``dataset.toml``; it
        is copied to ``out``.
    train : whether ID has train images; a pretrained model needs none.
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
    folder, out, steps = Path(folder), Path(out), Steps(report)
    if out.resolve().is_relative_to(folder.resolve()):
        raise OutputError("must be outside the folder of images", where=str(out), hint="give another --out")
    declaration = None if declared is None else declaration_in(declared)
    dataset_name = declared_name(folder) if declaration is None else declaration.name
    folder_name = without_accents(folder.resolve().name).lower()
    name = name or dataset_name or re.sub(r"[^a-z0-9]+", "-", folder_name).strip("-")
    check_new_name(name)
    if hierarchy is not None and dataset_name is not None:
        hint = "write [hierarchy] into the file that declares it"
        raise RecipeError(f"--hierarchy: {dataset_name} is declared", where="benchmark", hint=hint)
    file, source = _known_source(known, of, dataset_name or name)
    if source != (dataset_name or name):  # a wrong one is refused before anything is written or asked
        _KnownClasses.parse(known, file, source)
    if declaration is not None:
        beside = copy_declaration(declaration, folder, out, steps)
    elif dataset_name is None:
        beside = declare_folder(folder, name, out, steps, None if hierarchy is None else Path(hierarchy))
    else:
        beside = None
        register_declaration(folder, dataset_name)
    dataset_name = dataset_name or name
    if beside is not None:
        declare(read_declaration(beside))
    dataset = LOCAL.by_name[dataset_name]
    if source != dataset_name:
        hierarchy_of_lists(dataset_name, source)  # refuses two
    unsure = make_folder_catalog(folder, dataset, beside, ask, accept, language, ids, steps)
    if unsure and not accept:
        return FolderBenchmark(name, out, steps.steps, unsure)
    known_classes = _KnownClasses.parse(known, file, source)
    of_known = {n: r for n, r in (roots or {}).items() if n == known_classes.source}
    used_roots: dict[str, Path | str] = {**of_known, dataset.name: folder}
    flags = [word for n, r in used_roots.items() for word in ("--root", f"{n}={r}")]
    declared_flags = [*flags, *(() if beside is None else ("--declared", beside))]
    no_train = () if train else ("--no-train",)

    steps.begin("sources", "inventory", dataset.name, *declared_flags)
    inventory = make_inventory(dataset.name, roots=used_roots, workers=workers, progress=progress)
    steps.end(inventory.sentence)

    against, of_list = known_classes.against(out / f"{name}.known.txt")
    of_flags = [] if of_list is None else ["--of", of_list]
    steps.begin("audit", "thresholds", dataset.name, "--against", against, *of_flags, *declared_flags)
    counts = thresholds(dataset.name, against, measure=MEASURE, of=of_list)
    chosen = counts.balanced
    if chosen is None:
        proposal = _own_classes_as_known(name, out, counts, dataset, [*no_train, *declared_flags])
        raise _no_threshold(counts, dataset, proposal)
    steps.end(*_sizes_by_threshold(counts, chosen), chosen.sentence)

    path = out / f"{name}.toml"
    bound = f"{dataset.name}:{MEASURE}={np.format_float_positional(chosen.threshold)}"
    groups = ("--id", known_classes.text, "--near", bound, "--far", bound)
    steps.begin("new", name, *groups, *no_train, *declared_flags, "--out", path)
    recipe = new_recipe(
        name,
        path,
        known=known_classes.text,
        near=[bound],
        far=[bound],
        roots=used_roots,
        train=train,
        resume=True,
    )
    evidence = [f"{row['class_id']}: {row['evidence']}; margin {row['margin']}" for row in recipe.evidence]
    steps.end(*_group_sizes(recipe.groups), *evidence, *recipe.overlaps, *recipe.left_out, *recipe.notes)

    steps.begin("build", path, *flags, "--out", out)
    build = build_benchmark(path, roots=used_roots, out=out, workers=workers, progress=progress)
    built = out / name
    complete = "complete" if build.manifest.complete else "a source is awaited"
    steps.end(f"{built}: {complete}")

    given = f"./{built}" if built.parent == Path() else built  # a bare name would be a frozen benchmark's
    steps.begin("verify", given, *flags)
    verification = verify_benchmark(
        load_manifest(built, check="none"), roots=used_roots, workers=workers, progress=progress
    )
    problems = [f"{p.kind}: {p.detail}" for p in verification.problems[:SHOWN]]
    steps.end(*(problems or ["agrees with its rules and the images"]))

    pages = out / "site" / name
    steps.begin("site", given, "--out", pages)
    site = make_site(pages, [built], progress=progress)
    page = site.out / "index.html"
    steps.end(f"open {page}")
    verdict = judge_benchmark(load_recipe(path), build.manifest, recipe.verdict.readings)
    steps.say(*map(str, verdict.lines))
    return FolderBenchmark(name, out, steps.steps, unsure, chosen, verification.ok, page, verdict)


def _known_source(known: str, of: str | None, dataset: str) -> tuple[Path | None, str]:
    """Return the file that lists the ID classes, if it is one, and the source of these classes."""
    path, source = Path(known), known.partition(":")[0]
    if source not in known_sources() and (path.is_file() or is_path(source) or Path(source).suffix):
        if not path.is_file():
            raise DataError("no such file of classes", where=known, hint=KNOWN_HINT)
        return path, of or dataset
    if of is not None:
        raise RecipeError("--of only applies to a file of classes", where="--known", hint="leave it out")
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
            listed = load_class_list(file, hierarchy_of_lists(file, of=source), of=source)
            return cls(source, tuple(item.id for item in listed.classes), file)
        group = parse_group(known, where="--known")
        if group.draw is not None or group.bound is not None:
            raise RecipeError(
                f"must be SOURCE or SOURCE:CLASS, got {known!r}",
                where="--known",
                hint="as in cifar100:fox",
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


def _own_classes_as_known(
    name: str, out: Path, counts: Thresholds, dataset: Declaration, flags: Sequence[object]
) -> str | None:
    """Return the command that makes a folder's classes ID, if all of them equal a known class, else None.

    Near and far are then the other classes of the source of the known ones, by the balanced threshold.
    """
    unequal = any(row["value"] is not None for row in counts.rows())
    if unequal or not counts.equal or counts.against not in known_sources():
        return None
    chosen = thresholds(counts.against, dataset.name, measure=MEASURE).balanced
    if chosen is None:
        return None
    bound = f"{counts.against}:{MEASURE}={np.format_float_positional(chosen.threshold)}"
    splits = map(parse_split, load_catalog(dataset.name).splits)
    has_train = any(split is not None and split.kind in TRAIN for split in splits)
    if not has_train and "--no-train" not in flags:
        flags = ["--no-train", *flags]
    words = ["new", name, "--id", dataset.name, "--near", bound, "--far", bound, *map(str, flags)]
    return shlex.join(["wordnet-splits", *words, "--out", str(out / f"{name}.toml")])


def _no_threshold(counts: Thresholds, dataset: Declaration, command: str | None) -> DataError:
    """Return the error for classes that no threshold divides into near and far; ``command`` is proposed."""
    rows = counts.rows()
    kin = sum(row["relation"] is not None for row in rows)
    unmapped = sum(row["value"] is None for row in rows)
    noun = "synset" if dataset.hierarchy is None else "node"
    if rows and unmapped == len(rows):
        what, hint = f"none of {counted(len(rows), 'class')} has a {noun}", "map classes by hand"
    else:
        what = (
            f"no threshold yields both near and far classes: {counts.equal:,} equal a known class, {kin:,} "
            f"are above or below one, {unmapped:,} have no {noun}, and {len(rows) - kin - unmapped:,} remain"
        )
        hint = "give other classes, or other known ones"
    if command is not None:
        hint = f"make them ID, and other classes of {counts.against} near and far: {command}"
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
