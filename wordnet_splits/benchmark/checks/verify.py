"""Verification of a manifest: its files, its fields against the rules, its digests against images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from wordnet_splits.base.errors import ManifestError, Problem
from wordnet_splits.base.files import locked, restore
from wordnet_splits.base.progress import Progress
from wordnet_splits.benchmark.checks.verification import (
    EXPLANATION_DIFFERS,
    CheckedGroup,
    LocatedProblem,
    Verification,
    count_checks,
    differences,
    folder_problems,
    of_whole,
)
from wordnet_splits.benchmark.construct import build_recipe
from wordnet_splits.benchmark.manifest import Manifest, Part, write_manifest
from wordnet_splits.benchmark.manifest.loading import altered_sources, read_again, while_steady
from wordnet_splits.benchmark.recipe import Recipe, awaited_lists, load_recipe, recipe_names
from wordnet_splits.datasets.sources.roots import Roots, declare_roots
from wordnet_splits.wordnet.taxonomy import Taxonomy


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

    Ids are compared with inventories and with the roots given; unknown ids are not compared. Pixels
    are compared if their source has a root, is embedded or is generated. A manifest that a build replaces
    meanwhile is read and compared again.

    Parameters
    ----------
    manifest : a manifest read from a folder.
    roots : folder of each source whose pixels are compared.
    out : folder to write the fresh build into, as ``<name>/``, if there are no problems.
    workers : processes that read images.

    Raises
    ------
    ManifestError : the manifest is in no folder, or ``manifest.json`` or the class table is malformed.
    SourceError : a root holds another dataset.

    Examples
    --------
    >>> verification = verify_benchmark(load_manifest("digits"))
    >>> [(c.group, c.ids, c.pixels) for c in verification.checks if c.split == "test"][0]
    ('digits-0-5', 360, 360)
    """
    folder = manifest.folder
    if folder is None:
        raise ManifestError("is not in a folder", where=manifest.name, hint="build it with `out`")

    def verify() -> Verification:
        return _verify(
            read_again(manifest),
            recipe_of,
            roots or {},
            out,
            workers=workers,
            taxonomy=taxonomy,
            progress=progress,
        )

    return while_steady(folder, verify, suspect=lambda verification: not verification.ok)


def verify_received(manifest: Manifest) -> list[Problem]:
    """Return the problems of a manifest from the Hub.

    It is compared with the shipped recipe of its name and version, otherwise with the recipe in it. Evidence
    and distances are compared only if this version of the program wrote them.
    """
    problems = _verify(manifest, _recipe_of_version, {}).problems
    if manifest.data.provenance.get("wordnet-splits") == version("wordnet-splits"):
        return list(problems)
    return [problem for problem in problems if not problem.detail.startswith(EXPLANATION_DIFFERS)]


def recipe_of(manifest: Manifest) -> Recipe:
    """Return the recipe to compare a manifest with: the shipped recipe of its name, else its own.

    A shipped recipe whose lists are missing does not count: users import that benchmark under its name.
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
    roots: Roots,
    out: Path | None = None,
    *,
    workers: int = 1,
    taxonomy: Taxonomy | None = None,
    progress: Progress | None = None,
) -> Verification:
    if carried := altered_sources(frozen):
        return _verification(frozen, [of_whole("fingerprint", text) for text in carried])
    declare_roots(roots, frozen.datasets)
    problems = list(folder_problems(frozen))
    if any(located.part for located in problems):
        return _verification(frozen, problems)
    build = build_recipe(
        recipe_for(frozen),
        roots,
        given=frozen,
        seed=frozen.data.seed if "@seed=" in frozen.name else None,
        local=frozen.name.endswith("@local"),
        workers=workers,
        taxonomy=taxonomy,
        progress=progress,
    )
    problems += differences(frozen, build.manifest)
    problems += _located(build.problems, build.manifest)
    if out is not None and not problems:
        with locked(out / build.manifest.name, busy="another build is writing here"):
            restore(out / build.manifest.name)
            write_manifest(build.manifest, out)
    checks = count_checks(frozen, problems, build.drawn, build.pixels)
    return _verification(frozen, problems, checks, build.unexpected, build.unread)


def _located(problems: Sequence[Problem], manifest: Manifest) -> list[LocatedProblem]:
    """Return the problems of a manifest's images, each with the part that holds the image."""
    part_of: dict[tuple[str, str | None], Part] = {}
    for part, read_table in manifest.parts.items() if problems else ():
        columns = (read_table()[name].to_pylist() for name in ("source", "image_id"))
        part_of |= dict.fromkeys(zip(*columns, strict=True), part)
    keys = [(problem.source, problem.image_id) for problem in problems]
    return [LocatedProblem(p, part_of[key]) for p, key in zip(problems, keys, strict=True) if key in part_of]


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
