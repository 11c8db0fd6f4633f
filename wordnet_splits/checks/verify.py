"""Verification of a manifest: its files, its fields against the rules, its digests against images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from filecmp import cmp
from importlib.metadata import version
from pathlib import Path

from wordnet_splits.base.errors import ManifestError, Problem
from wordnet_splits.base.progress import Progress
from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.checks.differences import EXPLANATION_DIFFERS, differences, folder_problems, of_whole
from wordnet_splits.checks.listing import awaited_lists
from wordnet_splits.checks.verification import CheckedGroup, LocatedProblem, Verification, count_checks
from wordnet_splits.making.assemble import Rules, assemble, decide
from wordnet_splits.making.digesting import read_digests
from wordnet_splits.making.images import Selection, select_images
from wordnet_splits.making.population import Awaiting
from wordnet_splits.making.run import (
    BuildOptions,
    build_benchmark,
    generated_source,
    read_pixels,
    unexpected_names,
    unreadable_by_position,
)
from wordnet_splits.manifest import GroupRow, Manifest, Part
from wordnet_splits.manifest.reading import altered_sources, read_again, while_steady
from wordnet_splits.recipe import Recipe, load_recipe, recipe_names
from wordnet_splits.sources import Source, open_source
from wordnet_splits.sources.roots import Roots, declare_roots
from wordnet_splits.taxonomy import Taxonomy, load


def verify_benchmark(
    manifest: Manifest,
    *,
    roots: Roots | None = None,
    out: Path | None = None,
    workers: int = 1,
    taxonomy: Taxonomy | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Compare a manifest, except its provenance, with its tables and with a fresh build.

    Ids are compared with inventories and with the roots given; ids that await a root are not compared. Pixels
    are compared if their source has a root, is embedded or is generated. A manifest that a build replaces
    meanwhile is read and compared again.

    Parameters
    ----------
    manifest : a manifest read from a folder.
    roots : folder of each source whose pixels are compared.
    out : folder for a fresh build of the benchmark; a manifest equal to it byte for byte needs no further
        comparison.
    workers : processes that read images.

    Raises
    ------
    ManifestError : the manifest is in no folder, or ``manifest.json`` or the class table is malformed.
    SourceError : a root is not that of its source.

    Examples
    --------
    >>> verification = verify_benchmark(load_manifest("digits"))
    >>> [(c.group, c.ids, c.pixels) for c in verification.checks if c.split == "test"][0]
    ('digits-0-5', 360, 360)
    """
    folder = manifest.folder
    if folder is None:
        raise ManifestError("is not in a folder", where=manifest.name, hint="build it with `out`")
    options = BuildOptions(roots or {}, workers=workers, progress=progress)

    def verify() -> Verification:
        return _verify(read_again(manifest), recipe_of, options, out, taxonomy)

    return while_steady(folder, verify, suspect=lambda verification: not verification.ok)


def verify_received(manifest: Manifest) -> list[Problem]:
    """Return the problems of a manifest from the Hub.

    It is compared with the shipped recipe of its name and version, otherwise with the recipe in it. Evidence
    and distances are not compared with those of another version of this program.
    """
    problems = _verify(manifest, _recipe_of_version, BuildOptions({}), None, None).problems
    if manifest.data.provenance.get("wordnet-splits") == version("wordnet-splits"):
        return list(problems)
    return [problem for problem in problems if not problem.detail.startswith(EXPLANATION_DIFFERS)]


def recipe_of(manifest: Manifest) -> Recipe:
    """Return the recipe to compare a manifest with: the shipped one of its name, else the one in it.

    A shipped recipe that awaits a list stands for the benchmark that a user imports under its name.
    """
    name = manifest.name.partition("@")[0]
    shipped = load_recipe(name) if name in recipe_names() else None
    return load_recipe(manifest) if shipped is None or awaited_lists(shipped) else shipped


def _recipe_of_version(manifest: Manifest) -> Recipe:
    recipe = recipe_of(manifest)
    return recipe if recipe.version == manifest.version else load_recipe(manifest)


def _verify(
    frozen: Manifest,
    recipe_for: Callable[[Manifest], Recipe],
    options: BuildOptions,
    out: Path | None,
    taxonomy: Taxonomy | None,
) -> Verification:
    options = replace(options, local=frozen.name.endswith("@local"))
    if carried := altered_sources(frozen):
        return _verification(frozen, [of_whole("fingerprint", text) for text in carried])
    with using_sources(frozen.declarations):
        declare_roots(options.roots)
        recipe = recipe_for(frozen)
        if out is not None and (equal := _equal_build(frozen, recipe, options, out, taxonomy)):
            return equal
        problems = list(folder_problems(frozen))
        if any(located.part for located in problems):
            return _verification(frozen, problems)
        return _compare(frozen, recipe, options, taxonomy or load(), problems)


def _equal_build(
    frozen: Manifest, recipe: Recipe, options: BuildOptions, out: Path, taxonomy: Taxonomy | None
) -> Verification | None:
    """Build into ``out``; return a verification if that compared everything and is equal byte for byte."""
    built = build_benchmark(
        recipe,
        roots=options.roots,
        out=out,
        seed=frozen.data.seed if "@seed=" in frozen.name else None,
        local=options.local,
        workers=options.workers,
        taxonomy=taxonomy,
        progress=options.progress,
    )
    assert frozen.folder is not None
    assert built.folder is not None
    embedded = any(group.noise is None and generated_source(group) for group in recipe.group)
    if options.roots or embedded or not _same_bytes(frozen.folder, built.folder):
        return None  # a build takes the digests of embedded images from an inventory, without the images
    noise = {group.name for group in recipe.group if group.noise is not None}
    images: dict[Part, int] = {(row.split, row.group): row.rows for row in frozen.data.fingerprints.images}
    generated = {part: rows for part, rows in images.items() if part[1] in noise}
    return _verification(frozen, [], count_checks(frozen, [], images, generated, rows=images))


def _same_bytes(a: Path, b: Path) -> bool:
    """Say whether two folders hold the same files."""
    names = [{p.relative_to(f).as_posix() for p in f.rglob("*") if p.is_file()} for f in (a, b)]
    return names[0] == names[1] and all(cmp(a / name, b / name, shallow=False) for name in names[0])


def _compare(
    frozen: Manifest,
    recipe: Recipe,
    options: BuildOptions,
    taxonomy: Taxonomy,
    problems: Sequence[LocatedProblem],
) -> Verification:
    """Compare a manifest with a build of its recipe; ``problems`` were found in its folder."""
    resampled = "@seed=" in frozen.name
    rules = decide(recipe, frozen.data.seed if resampled else recipe.seed, taxonomy)
    sources = {n: open_source(n, r) for n, r in sorted(options.roots.items()) if n in recipe.sources}
    selections, compared = _draw_again(frozen, rules, sources, options)
    fresh, _ = assemble(rules, selections, taxonomy, resampled=resampled, strict=False)
    unread = unreadable_by_position(selections, sources, options)
    readable = {n: s for n, s in sources.items() if n not in unread}
    pixel_problems, pixels = _compare_pixels(selections, readable, options)
    unexpected = unexpected_names(sources, {located.problem.source for located in pixel_problems})
    problems = [*problems, *differences(frozen, fresh), *pixel_problems]
    checks = count_checks(frozen, problems, compared, pixels)
    return _verification(frozen, problems, checks, unexpected, unread)


def _verification(
    frozen: Manifest,
    problems: Sequence[LocatedProblem],
    checks: Sequence[CheckedGroup] | None = None,
    unexpected: Mapping[str, Mapping[str, int]] | None = None,
    unread: Mapping[str, str] | None = None,
) -> Verification:
    return Verification(
        frozen.name,
        list(frozen.groups),
        count_checks(frozen, problems) if checks is None else checks,
        [located.problem for located in problems],
        unexpected or {},
        unread or {},
    )


def _draw_again(
    frozen: Manifest, rules: Rules, sources: Mapping[str, Source], options: BuildOptions
) -> tuple[list[Selection], dict[Part, int]]:
    """Return the images that the rules select, and the number of images of each part that could be drawn.

    The frozen images stand in for those that await a root, and frozen digests for those that no inventory
    has.
    """
    recipe, groups = rules.recipe, rules.membership.groups
    rows: dict[Part, GroupRow] = {(row.split, row.group): row for row in frozen.groups}
    selections = select_images(recipe, rules.seed, groups, {})
    for selection in selections if options.local else ():
        row = rows.get((selection.split, selection.group.name))
        if row is not None and row.population is not None and selection.awaiting is None:
            # a local build drew from the images of the inventory that its root had
            selection.awaiting = Awaiting(selection.group.source, "drawn from the images of a root")
            selection.images, selection.digests, selection.expected = {}, {}, None
    if sources and any(s.awaiting is not None for s in selections):
        rooted = select_images(
            recipe, rules.seed, groups, sources, local=options.local, progress=options.progress
        )
        # with a root more images are known; a manifest that could now be completed has no problem
        selections = [
            r if (s.split, s.group.name) in frozen.parts else s
            for s, r in zip(selections, rooted, strict=True)
        ]
    read_pixels(selections, {}, options)  # of generated images
    compared: dict[Part, int] = {}
    for selection in selections:
        part = (selection.split, selection.group.name)
        if part not in frozen.parts:
            continue
        columns = (frozen.parts[part]()[c].to_pylist() for c in ("class_id", "image_id", "digest"))
        frozen_rows = list(zip(*columns, strict=True))
        if selection.awaiting is None:
            compared[part] = selection.count
        else:
            _take_over(selection, frozen_rows, rows[part])
        ids = {i for images in selection.images.values() for i in images}
        digests = {i: d for _, i, d in frozen_rows if d is not None and i in ids}
        selection.digests = digests | selection.digests
    return selections, compared


def _take_over(
    selection: Selection, frozen_rows: Sequence[tuple[str, str, bytes | None]], row: GroupRow
) -> None:
    for class_id, image_id, _ in frozen_rows:
        selection.images.setdefault(class_id, []).append(image_id)
    selection.awaiting = None
    selection.expected = row.expected if selection.expected is None else selection.expected
    selection.local, selection.population = row.population is not None, row.population


def _compare_pixels(
    selections: Sequence[Selection], sources: Mapping[str, Source], options: BuildOptions
) -> tuple[list[LocatedProblem], dict[Part, int]]:
    """Read the images of roots and embedded sources; return problems, and the images with their digest."""
    problems: list[LocatedProblem] = []
    pixels: Counter[Part] = Counter()
    by_source: dict[str, list[Selection]] = {}
    for selection in (s for s in selections if s.awaiting is None):
        if selection.group.noise is not None:  # generated when it was drawn
            pixels[selection.split, selection.group.name] = len(selection.digests)
        else:
            by_source.setdefault(selection.group.source, []).append(selection)
    for name, of_source in sorted(by_source.items()):
        source = sources.get(name) or generated_source(of_source[0].group)
        if source is None:
            continue
        digests = {i: d for s in of_source for i, d in s.digests.items()}
        classes = {i: c for s in of_source for c, ids in s.images.items() for i in ids}
        part_of = {i: (s.split, s.group.name) for s in of_source for ids in s.images.values() for i in ids}
        digested, unreadable = read_digests(
            source, classes, digests, workers=options.workers, progress=options.progress
        )
        pixels.update(part_of[i] for i in digested if i in digests)
        problems += [LocatedProblem(p, part_of.get(p.image_id or "")) for p in unreadable]
    return problems, dict(pixels)
