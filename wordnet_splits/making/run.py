"""Builds: from a recipe to a manifest, for one benchmark or several.

`build_benchmark` reads inventories, lists and roots, never ``manifests/``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from wordnet_splits.base.errors import MissingImageError, Problem, SourceError, SplitsError
from wordnet_splits.base.files import locked, restore
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.workers import run_jobs
from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.making.assemble import assemble, decide
from wordnet_splits.making.digesting import read_digests
from wordnet_splits.making.images import Selection, select_images
from wordnet_splits.making.leaks import Leak
from wordnet_splits.making.population import NO_POSITIONS
from wordnet_splits.manifest import Manifest, read_manifest, write_manifest
from wordnet_splits.recipe import Group, Recipe, declared_by, load_recipe
from wordnet_splits.sources import Source, open_source, source_class
from wordnet_splits.sources.roots import Roots, declare_roots
from wordnet_splits.taxonomy import Taxonomy, load

Benchmark = TypeVar("Benchmark", Manifest, Recipe)
Result = TypeVar("Result")


@dataclass
class Build:
    """Result of a build.

    Attributes
    ----------
    problems : images that are missing, unreadable or altered under a root, and so left out.
    unexpected : names under a root that are not ids of its source, and how often each.
    unread : sources with a root of which no image was read, and why.
    unnamed : leaks of another draw, or of one with images left out, that the recipe does not name.
    folder : folder that the manifest was written to, if any.
    """

    manifest: Manifest
    problems: list[Problem] = field(default_factory=list)
    unexpected: dict[str, dict[str, int]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    unnamed: list[Leak] = field(default_factory=list)
    folder: Path | None = None


@dataclass
class BuildOptions:
    """Options of `build_benchmark`."""

    roots: Roots = field(default_factory=dict)
    seed: int | None = None
    allow_missing: bool = False
    local: bool = False
    workers: int = 1
    progress: Progress | None = None
    journal: Path | None = None


def build_benchmark(
    recipe: Recipe | Manifest | str | Path,
    *,
    roots: Roots | None = None,
    out: Path | None = None,
    seed: int | None = None,
    allow_missing: bool = False,
    local: bool = False,
    workers: int = 1,
    taxonomy: Taxonomy | None = None,
    progress: Progress | None = None,
) -> Build:
    """Build a benchmark's manifest.

    Parameters
    ----------
    recipe : a recipe, the name of a shipped one, the path of a TOML file, or a manifest with a recipe.
    roots : folders of sources; images of other sources are not read.
    out : folder to write ``<name>/`` into; None to write nothing.
    seed : another seed than the recipe's; the result is named ``NAME@seed=N`` and is never frozen.
    allow_missing : leave out images that a root lacks instead of raising; the result is not ``complete``.
    local : draw from the images of a root even if its counts are unknown or differ, or it lacks images; the
        result is named ``NAME@local`` and is never frozen.
    workers : processes that read images; the result does not depend on it.

    Raises
    ------
    RecipeError, SourceError, OutputError : see the message.
    MissingImageError : images are absent, damaged or altered under a root, without ``allow_missing``.
    """
    options = BuildOptions(roots or {}, seed, allow_missing, local, workers, progress)
    with using_sources(declared_by(recipe)):
        declare_roots(roots)  # a root may declare a dataset of the recipe
        return _build(load_recipe(recipe), options, out, taxonomy)


def _build(recipe: Recipe, options: BuildOptions, out: Path | None, taxonomy: Taxonomy | None) -> Build:
    if out is None:
        return build_recipe(recipe, options, taxonomy)
    seed = options.seed
    label = recipe.name if seed is None else f"{recipe.name}@seed={seed}"
    with locked(out / label, busy="another build is writing here", hint="wait for it, or give another --out"):
        restore(out / label)
        options.journal = out / f".{label}.journal"
        result = build_recipe(recipe, options, taxonomy)
        result.folder = write_manifest(result.manifest, out)
        result.manifest = read_manifest(result.folder)  # reads image tables on demand
        # after any error the journal stays, and the next build continues from it
        shutil.rmtree(options.journal, ignore_errors=True)
    return result


def build_recipe(recipe: Recipe, options: BuildOptions, taxonomy: Taxonomy | None = None) -> Build:
    """Build a recipe's manifest in memory."""
    seed = recipe.seed if options.seed is None else options.seed
    sources = {n: open_source(n, r) for n, r in sorted(options.roots.items()) if n in recipe.sources}
    taxonomy = taxonomy or load()
    rules = decide(recipe, seed, taxonomy)
    classes = rules.membership.groups
    selections = select_images(recipe, seed, classes, sources, local=options.local, progress=options.progress)
    unread = unreadable_by_position(selections, sources, options)
    problems = read_pixels(selections, {n: s for n, s in sources.items() if n not in unread}, options)
    unexpected = unexpected_names(sources, {p.source for p in problems})
    if problems and not options.allow_missing:
        raise missing_error(problems, selections, sources, recipe.name)
    resampled = options.seed is not None
    manifest, leaks = assemble(rules, selections, taxonomy, missing=problems, resampled=resampled)
    unnamed = [leak for leak in leaks if leak.severity == "unnamed"]
    return Build(manifest, problems, unexpected, unread, unnamed)


def unreadable_by_position(
    selections: Sequence[Selection], sources: Mapping[str, Source], options: BuildOptions
) -> dict[str, str]:
    """Return the sources in which positions identify no image, with the reason.

    Raises
    ------
    SourceError : the images of such a source are needed, and the build is not local.
    """
    reasons = {}
    for name, source in sources.items():
        is_used = any(s.group.source == name and s.awaiting is None for s in selections)
        if is_used and source.order != "published":
            if not options.local:
                raise SourceError(
                    f"no picture of {name} can be read: {NO_POSITIONS}",
                    where=str(source.root),
                    hint="fetch the publisher's files, or leave this root out, or build with --local",
                )
            reasons[name] = NO_POSITIONS
    return reasons


def read_pixels(
    selections: list[Selection], sources: Mapping[str, Source], options: BuildOptions
) -> list[Problem]:
    """Read the selected images of roots and generators, set their digests and drop bad images.

    Returns a problem for each image that is missing, unreadable or altered.
    """
    problems: list[Problem] = []
    batches: dict[str, tuple[Source, list[Selection]]] = {}
    for selection in selections:
        source = sources.get(selection.group.source) or generated_source(selection.group)
        if source is not None and selection.awaiting is None:
            at = (
                selection.group.source
                if source.rooted
                else f"{selection.group.source}-{selection.group.name}"
            )
            batches.setdefault(at, (source, []))[1].append(selection)
    for at, (source, of_source) in sorted(batches.items()):
        classes = {i: c for s in of_source for c, ids in s.images.items() for i in ids}
        digests_before = {i: d for s in of_source for i, d in s.digests.items()}
        if not source.rooted and digests_before.keys() == classes.keys():
            continue  # embedded images, whose digests are in an inventory
        digests, unread = read_digests(
            source,
            classes,
            digests_before,
            workers=options.workers,
            journal=options.journal / f"{at}.tsv" if options.journal else None,
            progress=options.progress,
        )
        bad = {p.image_id for p in unread}
        for selection in of_source:
            for class_id, ids in selection.images.items():
                selection.images[class_id] = [i for i in ids if i not in bad]
            selection.digests = {i: digests[i] for ids in selection.images.values() for i in ids}
        problems += unread
    return problems


def generated_source(group: Group) -> Source | None:
    """Return the opened source of a group that needs no root, else None."""
    if source_class(group.source).rooted:
        return None
    if group.noise is None:
        return open_source(group.source)
    return open_source(group.source, shape=group.noise.shape, seed=group.noise.seed)


def unexpected_names(sources: Mapping[str, Source], incomplete: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the names under each root that are not ids of its source, and how often each.

    The roots of ``incomplete`` sources are scanned, unless they have been: files with other names often
    explain why images are missing.
    """
    for name in sorted(sources.keys() & incomplete):
        if not sources[name].unexpected:
            with suppress(SplitsError):
                sources[name].count()
    return {n: dict(sorted(s.unexpected.items())) for n, s in sources.items() if s.unexpected}


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
    jobs = run_jobs(partial(function, **options), benchmarks, workers, name=_name, ordered=True)
    with progress.task(task, len(benchmarks)) as bar, closing(jobs) as results:
        for _, result in results:
            bar.advance()
            yield result


def _name(benchmark: Manifest | Recipe) -> str:
    return benchmark.name
