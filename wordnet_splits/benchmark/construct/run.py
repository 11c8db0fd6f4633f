"""Builds: from a recipe to a manifest, for one benchmark or several.

A build reads inventories, lists and roots; the images of a frozen manifest only where they are given.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from wordnet_splits.base.errors import MissingImageError, Problem
from wordnet_splits.base.files import as_path, locked, restore
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.benchmark.construct.assemble import assemble
from wordnet_splits.benchmark.construct.classes import Membership, assign_classes
from wordnet_splits.benchmark.construct.digesting import read_pixels, unexpected_names, unreadable_by_position
from wordnet_splits.benchmark.construct.leak_kinds import Leak
from wordnet_splits.benchmark.construct.selection import Selection, select_images
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import GroupRow, Manifest, Part, read_manifest, write_manifest
from wordnet_splits.benchmark.recipe import Recipe, declared_by, load_recipe
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.datasets.sources import Source, open_source
from wordnet_splits.datasets.sources.roots import Roots, declare_roots
from wordnet_splits.wordnet.taxonomy import Taxonomy

Benchmark = TypeVar("Benchmark", Manifest, Recipe)
Result = TypeVar("Result")


@dataclass
class Build:
    """Result of a build.

    Attributes
    ----------
    problems : images that are missing, unreadable or altered under a root; left out unless images were given.
    unexpected : names under a root that are not ids of its source, and how often each.
    unread : sources with a root whose images were not read, and why.
    unnamed : leaks that the recipe does not name, of another draw or a draw with images left out.
    membership : the classes of every group with the verdicts of the rules; None from `build_benchmark`.
    drawn : number of images of each part that the rules draw again, if images are given.
    pixels : number of images of each part that were read and have their digest, if images are given.
    folder : folder that the manifest was written to, if any.
    """

    manifest: Manifest
    problems: list[Problem] = field(default_factory=list)
    unexpected: dict[str, dict[str, int]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    unnamed: list[Leak] = field(default_factory=list)
    membership: Membership | None = field(default=None, repr=False)
    drawn: dict[Part, int] = field(default_factory=dict)
    pixels: dict[Part, int] = field(default_factory=dict)
    folder: Path | None = None


def build_benchmark(
    recipe: Recipe | Manifest | str | Path,
    *,
    roots: Roots | None = None,
    out: str | Path | None = None,
    seed: int | None = None,
    allow_missing: bool = False,
    local: bool = False,
    workers: int = 1,
    taxonomy: Taxonomy | str | None = None,
    progress: Progress | None = None,
) -> Build:
    """Build a benchmark's manifest, and write it if ``out`` is given.

    Parameters
    ----------
    recipe : a recipe, the name of a shipped one, the path of a TOML file, or a manifest with a recipe.
    roots : folders of sources; images of other sources are not read.
    out : folder to write ``<name>/`` into; None to write nothing.
    seed, allow_missing, local, workers, taxonomy : as in `build_recipe`.

    Raises
    ------
    RecipeError, SourceError, OutputError : see the message.
    MissingImageError : images are absent, damaged or altered under a root, without ``allow_missing``.
    """
    declare_roots(roots, Sources.of(declared_by(recipe)))  # a root may declare a dataset of the recipe
    loaded = load_recipe(recipe)
    build = partial(
        build_recipe,
        loaded,
        roots or {},
        seed=seed,
        allow_missing=allow_missing,
        local=local,
        workers=workers,
        taxonomy=taxonomy,
        progress=progress,
    )
    if out is None:
        return replace(build(), membership=None)
    label = loaded.name if seed is None else f"{loaded.name}@seed={seed}"
    folder = as_path(out, where="out")
    with locked(
        folder / label, busy="another build is writing here", hint="wait for it, or give another --out"
    ):
        restore(folder / label)
        journal = folder / f".{label}.journal"
        result = replace(build(journal=journal), membership=None)  # it may be sent to another process
        result.folder = write_manifest(result.manifest, folder)
        result.manifest = read_manifest(result.folder)  # reads image tables on demand
        # after any error the journal stays, and the next build continues from it
        shutil.rmtree(journal, ignore_errors=True)
    return result


def build_recipe(
    recipe: Recipe,
    roots: Roots,
    *,
    given: Manifest | None = None,
    seed: int | None = None,
    allow_missing: bool = False,
    local: bool = False,
    workers: int = 1,
    taxonomy: Taxonomy | str | None = None,
    progress: Progress | None = None,
    journal: Path | None = None,
) -> Build:
    """Build a recipe's manifest in memory: classes, images, pixels, tables, leaks.

    Parameters
    ----------
    roots : folders of sources; images of other sources are not read.
    given : a frozen manifest of the recipe to compare with. Its images replace unknown images, its
        digests unknown digests; problems of images are returned, and leaks may be unnamed.
    seed : another seed than the recipe's; the result is named ``NAME@seed=N`` and is never frozen.
    allow_missing : leave out images that a root lacks instead of raising; the result is not ``complete``.
    local : draw from the images of a root even if its counts are unknown or differ, or it lacks images; the
        result is named ``NAME@local`` and is never frozen.
    workers : processes that read images; the result does not depend on it.
    journal : folder of the digests that an interrupted build has read.

    Raises
    ------
    RecipeError, SourceError, OutputError : see the message.
    MissingImageError : images are absent, damaged or altered under a root, without ``allow_missing``.
    """
    resampled, seed = seed is not None, recipe.seed if seed is None else seed
    taxonomy = taxonomy_of(recipe, taxonomy)
    sources = {n: open_source(n, r, recipe.datasets) for n, r in sorted(roots.items()) if n in recipe.sources}
    membership, class_leaks = assign_classes(recipe, seed, taxonomy)
    select = partial(select_images, recipe, seed, membership.groups, local=local, progress=progress)
    selections = select(sources)
    drawn = {}
    if given is not None:
        if sources and any(s.part not in given.parts for s in selections):
            # images that a root could add to the frozen ones are no problem
            selections = [
                rooted if rooted.part in given.parts else other
                for rooted, other in zip(selections, select({}), strict=True)
            ]
        drawn = use_frozen_images(selections, given, sources)
    unread = unreadable_by_position(selections, sources, local=local)
    problems = read_pixels(
        selections,
        {n: s for n, s in sources.items() if n not in unread},
        recipe.datasets,
        keep=given is not None,
        workers=workers,
        journal=journal,
        progress=progress,
    )
    unexpected = unexpected_names(sources, {p.source for p in problems})
    missing = problems if given is None else []
    if missing and not allow_missing:
        raise missing_error(missing, selections, sources, recipe.name)
    strict = given is None and not resampled and not missing
    manifest, leaks = assemble(
        membership,
        class_leaks,
        selections,
        taxonomy,
        seed=seed,
        missing=missing,
        resampled=resampled,
        strict=strict,
    )
    unnamed = [leak for leak in leaks if leak.severity == "unnamed"]
    pixels = {s.part: sum(i in s.compared for ids in s.images.values() for i in ids) for s in selections}
    return Build(manifest, problems, unexpected, unread, unnamed, membership, drawn, pixels)


def use_frozen_images(
    selections: Sequence[Selection], frozen: Manifest, sources: Collection[str]
) -> dict[Part, int]:
    """Replace unknown images and digests by those in a manifest.

    Images that a local build drew from an incomplete root are also replaced, unless their source is in
    ``sources``.

    Returns
    -------
    The number of images that the rules drew again, for each part that was not replaced.
    """
    rows: dict[Part, GroupRow] = {(row.split, row.group): row for row in frozen.groups}
    drawn: dict[Part, int] = {}
    for selection in selections:
        if selection.part not in frozen.parts:
            continue
        row = rows[selection.part]
        table = frozen.parts[selection.part]()
        class_ids, ids, digests = (table[c].to_pylist() for c in ("class_id", "image_id", "digest"))
        is_awaited = selection.awaiting is not None
        is_local_draw = frozen.name.endswith("@local") and selection.group.noise is None
        is_local_draw &= row.population is not None and selection.group.source not in sources
        if is_awaited or is_local_draw:
            selection.images, selection.digests = {}, {}
            for class_id, image_id in zip(class_ids, ids, strict=True):
                selection.images.setdefault(class_id, []).append(image_id)
            if selection.expected is None or not is_awaited:
                selection.expected = row.expected
            selection.awaiting = None
            selection.local, selection.population = row.population is not None, row.population
        else:
            drawn[selection.part] = selection.count
        if selection.group.noise is None:
            selected = {i for of_class in selection.images.values() for i in of_class}
            known = {i: d for i, d in zip(ids, digests, strict=True) if d is not None and i in selected}
            selection.digests = known | selection.digests
    return drawn


def missing_error(
    problems: Sequence[Problem],
    selections: Sequence[Selection],
    sources: Mapping[str, Source],
    where: str,
) -> MissingImageError:
    """Return the error about the images that a build without ``allow_missing`` lacks."""
    clauses = []
    for name, kind in sorted({(p.source, p.kind) for p in problems}):
        of_kind = [p for p in problems if (p.source, p.kind) == (name, kind)]
        expected = sum(s.expected or 0 for s in selections if s.group.source == name and s.awaiting is None)
        under = f" under {sources[name].root}" if name in sources else ""
        examples = ", ".join(str(p.image_id) for p in of_kind[:3])
        why = "" if kind == "missing" else f": {of_kind[0].detail}"
        clauses.append(
            f"{len(of_kind):,} of {expected:,} images of {name} are {kind}{under}, such as {examples}{why}"
        )
    for name in sorted({p.source for p in problems} & sources.keys()):
        if names := sources[name].unexpected:
            clauses.append(
                f"{sum(names.values()):,} files there are under no known name, such as {min(names)}"
            )
    return MissingImageError(
        "; ".join(clauses),
        where=where,
        hint="complete the root, or leave them out with --allow-missing",
    )


def run_for_each(
    function: Callable[..., Result],
    benchmarks: Sequence[Benchmark],
    *,
    task: str,
    roots: Mapping[str, Path],
    workers: int,
    progress: Progress,
    **options: Any,
) -> Iterator[Result]:
    """Yield the result of ``function``, `build_benchmark` or `verify_benchmark`, for each benchmark in order.

    With roots, nearly all the time goes into reading images: the benchmarks run one after the other, each
    with all workers. Without roots, each worker runs whole benchmarks.

    Parameters
    ----------
    task : name of the progress bar, such as ``building``.
    """
    if roots or len(benchmarks) == 1:
        for benchmark in benchmarks:
            yield function(benchmark, roots=roots, workers=workers, progress=progress, **options)
        return
    jobs = run_jobs(partial(function, **options), benchmarks, workers, name=attrgetter("name"), ordered=True)
    with progress.task(task, len(benchmarks)) as bar, closing(jobs) as results:
        for _, result in results:
            bar.advance()
            yield result
