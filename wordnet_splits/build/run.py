"""From a recipe to a manifest: classes, images, digests, leaks, fingerprints.

`build` reads inventories, lists and roots, never ``manifests/``.
"""

from __future__ import annotations

import contextlib
import platform
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.build.digesting import read_digests
from wordnet_splits.build.images import Selection, select_images
from wordnet_splits.build.leaks import (
    Leak,
    check_once,
    class_leaks,
    digest_leaks,
    judge,
    leak_evidence,
    leaking_classes,
)
from wordnet_splits.build.membership import Membership, build_class_table, decide_membership, labels_of
from wordnet_splits.build.population import NO_POSITIONS, Populations
from wordnet_splits.errors import MissingImageError, Problem, SourceError, SplitsError
from wordnet_splits.files import locked, restore
from wordnet_splits.manifest import Manifest, Part, fingerprint, write_manifest
from wordnet_splits.manifest.data import SCHEMA, check_data
from wordnet_splits.manifest.tables import image_table
from wordnet_splits.progress import Progress
from wordnet_splits.recipe import Group, Recipe, load_recipe
from wordnet_splits.sources import Source, open_source, source_class
from wordnet_splits.taxonomy import Taxonomy, load


@dataclass
class Build:
    """What a build made, and what was not as it must be.

    Attributes
    ----------
    problems : images that are missing, unreadable or altered under a root, and so left out.
    unexpected : names under a root that are no ids of its source, and how often each.
    unread : sources of which no picture was read although a root is given, and why.
    unnamed : leaks of another draw, or of one with images left out, that the recipe does not name.
    folder : where the manifest was written, if it was.
    """

    manifest: Manifest
    problems: list[Problem] = field(default_factory=list)
    unexpected: dict[str, dict[str, int]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    unnamed: list[Leak] = field(default_factory=list)
    folder: Path | None = None


@dataclass
class Options:
    """How to build: see `build`."""

    roots: Mapping[str, Path] = field(default_factory=dict)
    seed: int | None = None
    allow_missing: bool = False
    local: bool = False
    workers: int = 1
    progress: Progress | None = None
    journal: Path | None = None
    known_digests: Mapping[tuple[str, str], bytes] = field(default_factory=dict)


def build(
    name: str | Path | Recipe,
    *,
    roots: Mapping[str, Path] | None = None,
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
    name : a shipped recipe's name, the path of a TOML file, or a recipe.
    roots : folder of each source at hand; the others' pixels are not looked at.
    out : folder to write ``<name>/`` into; nothing is written when None.
    seed : another seed than the recipe's; the result is named ``NAME@seed=N`` and is never frozen.
    allow_missing : leave out what a root lacks instead of raising; the result is not ``complete``.
    local : draw from what a root holds where its counts are unknown or differ; the result is named
        ``NAME@local`` and is never frozen.
    workers : processes that read images; the result does not depend on it.

    Raises
    ------
    RecipeError, SourceError, OutputError : see the message.
    MissingImageError : images are absent, damaged or altered under a root, without ``allow_missing``.
    """
    recipe = name if isinstance(name, Recipe) else load_recipe(name)
    options = Options(roots or {}, seed, allow_missing, local, workers, progress)
    if out is None:
        return build_recipe(recipe, options, taxonomy)
    label = recipe.name if seed is None else f"{recipe.name}@seed={seed}"
    with locked(out / label, busy="another build is writing here", hint="wait for it, or give another --out"):
        restore(out / label)
        options.journal = out / f".{label}.journal"
        result = build_recipe(recipe, options, taxonomy)
        result.folder = write_manifest(result.manifest, out)
        # after an error, whatever it is, the journal stays, and the next build goes on from it
        shutil.rmtree(options.journal, ignore_errors=True)
    return result


def build_recipe(recipe: Recipe, options: Options, taxonomy: Taxonomy | None = None) -> Build:
    """Build a recipe's manifest in memory."""
    taxonomy = taxonomy or load()
    seed = recipe.seed if options.seed is None else options.seed
    sources = {n: open_source(n, r) for n, r in sorted(options.roots.items()) if n in recipe.sources}
    membership = decide_membership(recipe, seed, taxonomy)
    leaks = class_leaks(membership, taxonomy)
    if recipe.drop_leaks:
        _drop_classes(membership, leaking_classes(recipe, leaks))
        leaks = class_leaks(membership, taxonomy)
    populations = Populations(sources, local=options.local, progress=options.progress)
    selections = select_images(recipe, seed, membership.groups, populations)
    unread = unreadable_by_position(selections, sources, options)
    problems = read_pixels(selections, {n: s for n, s in sources.items() if n not in unread}, options)
    unexpected = unexpected_names(sources, {p.source for p in problems})
    if problems and not options.allow_missing:
        raise missing_error(problems, selections, sources, recipe.name)
    if recipe.drop_leaks:
        _drop_identical(selections)
    parts = _parts(selections, membership)
    leaks += digest_leaks(recipe, (parts[p]() for p in parts))
    as_declared = options.seed is None and not problems
    judge(recipe, leaks, unknown_digests=_undigested(recipe, selections), strict=as_declared)
    classes = build_class_table(membership, taxonomy, leak_evidence(membership, leaks, taxonomy))
    check_once((parts[p]() for p in parts), recipe.name)
    local = any(s.local for s in selections)
    data = describe(recipe, seed, taxonomy, membership, selections, leaks, classes, parts)
    data["name"] = (
        recipe.name + (f"@seed={seed}" if options.seed is not None else "") + ("@local" if local else "")
    )
    data["missing"] = [p.as_dict() for p in problems]
    data["awaiting"] = sorted({s.awaiting.source for s in selections if s.awaiting is not None})
    data["complete"] = not data["missing"] and not data["awaiting"]
    unnamed = [leak for leak in leaks if leak.severity == "unnamed"]
    manifest = Manifest(check_data(data, recipe.name), classes, parts)
    return Build(manifest, problems, unexpected, unread, unnamed)


def unreadable_by_position(
    selections: Sequence[Selection], sources: Mapping[str, Source], options: Options
) -> dict[str, str]:
    """Return the sources whose positions name no images, and why; only a local build may hold one.

    Raises
    ------
    SourceError : pixels are wanted of such a copy.
    """
    found = {}
    for name, source in sources.items():
        wanted = any(s.group.source == name and s.awaiting is None for s in selections)
        if wanted and source.order != "published":
            if not options.local:
                raise SourceError(
                    f"no picture of {name} can be read: {NO_POSITIONS}",
                    where=str(source.root),
                    hint="fetch the publisher's files, or leave this root out, or build with --local",
                )
            found[name] = NO_POSITIONS
    return found


def read_pixels(
    selections: list[Selection], sources: Mapping[str, Source], options: Options
) -> list[Problem]:
    """Read the selected images that a root or a generator gives, fill their digests and drop bad ones.

    Returns one problem for each image that is missing, unreadable or altered.
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
    for at, (source, chosen) in sorted(batches.items()):
        classes = {i: c for s in chosen for c, ids in s.images.items() for i in ids}
        known = {i: d for s in chosen for i, d in s.digests.items()}
        frozen = options.known_digests
        known |= {i: frozen[source.name, i] for i in classes if (source.name, i) in frozen}
        if not source.rooted and known.keys() == classes.keys():
            continue  # embedded images, proved by their inventory
        digests, found = read_digests(
            source,
            classes,
            known,
            workers=options.workers,
            journal=options.journal / f"{at}.tsv" if options.journal else None,
            progress=options.progress,
        )
        bad = {p.image_id for p in found}
        for selection in chosen:
            for class_id, ids in selection.images.items():
                selection.images[class_id] = [i for i in ids if i not in bad]
            selection.digests = {i: digests[i] for ids in selection.images.values() for i in ids}
        problems += found
    return problems


def generated_source(group: Group) -> Source | None:
    """Return the opened source of a group that needs no root, else None."""
    if source_class(group.source).rooted:
        return None
    if group.noise is None:
        return open_source(group.source)
    return open_source(group.source, shape=group.noise.shape, seed=group.noise.seed)


def unexpected_names(sources: Mapping[str, Source], lacking: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the names under each root that are no ids of its source, and how often each.

    The roots of ``lacking`` sources are looked through where no scan has: images with other names are a
    likely reason why so many are missing.
    """
    for name in sorted(sources.keys() & lacking):
        if not sources[name].unexpected:
            with contextlib.suppress(SplitsError):
                sources[name].count()
    return {n: dict(sorted(s.unexpected.items())) for n, s in sources.items() if s.unexpected}


def missing_error(
    problems: Sequence[Problem],
    selections: Sequence[Selection],
    sources: Mapping[str, Source],
    where: str,
) -> MissingImageError:
    """Return the error that names what a build without ``allow_missing`` did not find."""
    clauses = []
    for name, kind in sorted({(p.source, p.kind) for p in problems}):
        found = [p for p in problems if (p.source, p.kind) == (name, kind)]
        wanted = sum(s.expected or 0 for s in selections if s.group.source == name and s.awaiting is None)
        under = f" under {sources[name].root}" if name in sources else ""
        first = ", ".join(str(p.image_id) for p in found[:3])
        why = "" if kind == "missing" else f": {found[0].detail}"
        clauses.append(
            f"{len(found):,} of {wanted:,} images of {name} are {kind}{under}, such as {first}{why}"
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


def _drop_classes(membership: Membership, dropped: Mapping[str, Mapping[str, str]]) -> None:
    for group in membership.recipe.group:
        gone = dropped.get(group.name, {})
        membership.groups[group.name] = [c for c in membership.groups[group.name] if c not in gone]
        for class_id, other in gone.items():
            reason = f"not {group.name}: it leaks into class {other}, and the recipe says drop_leaks"
            membership.removed[group.source, class_id] = (group, reason)


def _drop_identical(selections: list[Selection]) -> None:
    """Drop every OOD image that equals an ID or external one."""
    guarded = {"id", "external"}
    training = {d for s in selections if s.group.role in guarded for d in s.digests.values()}
    for selection in selections:
        if selection.group.role not in guarded:
            gone = {i for i, d in selection.digests.items() if d in training}
            for class_id, ids in selection.images.items():
                selection.images[class_id] = [i for i in ids if i not in gone]
            selection.expected = selection.count


def _parts(selections: list[Selection], membership: Membership) -> dict[Part, Callable[[], pa.Table]]:
    """Return the image tables by (split, group), in table order."""
    labels = labels_of(membership)
    known = [s for s in selections if s.awaiting is None]
    known.sort(key=lambda s: (s.split, s.group.role, s.group.name))
    return {(s.split, s.group.name): partial(_table, s, labels) for s in known}


def _table(selection: Selection, labels: Mapping[tuple[str, str], int]) -> pa.Table:
    group = selection.group
    labelled = group.role in ("id", "csid")
    return image_table(
        source=group.source,
        role=group.role,
        group=group.name,
        split=selection.split,
        view=group.view,
        labels={c: labels.get((group.source, c), -1) if labelled else -1 for c in selection.images},
        images=selection.images,
        digests=selection.digests,
    )


def _undigested(recipe: Recipe, selections: list[Selection]) -> frozenset[str]:
    unknown = {s.group.name for s in selections if s.awaiting is not None or len(s.digests) < s.count}
    return frozenset(unknown)


def describe(
    recipe: Recipe,
    seed: int,
    taxonomy: Taxonomy,
    membership: Membership,
    selections: list[Selection],
    leaks: list[Leak],
    classes: pa.Table,
    parts: Mapping[Part, Callable[[], pa.Table]],
) -> dict[str, Any]:
    """Return the content of ``manifest.json``, but for name, complete and missing."""
    of_parts, of_all = fingerprint.of_parts(read() for read in parts.values())
    images = [
        {"split": split, "group": group, **vars(prints)}
        for (split, group), prints in zip(parts, of_parts, strict=True)
    ]
    whole = all(s.awaiting is None for s in selections)
    in_all = of_all.images if whole else None
    return {
        "schema": SCHEMA,
        "version": recipe.version,
        "recipe": recipe.as_data(),
        "seed": seed,
        "taxonomy": {"name": "WordNet", "version": taxonomy.version, "hierarchy": recipe.hierarchy},
        "groups": group_rows(recipe, membership, selections),
        "fingerprint": in_all,
        "fingerprints": {
            "classes": fingerprint.of_classes(classes),
            "explanation": fingerprint.of_explanation(classes),
            "images": images,
            "images_in_all": in_all,
            "pixels_in_all": of_all.pixels if whole else None,
        },
        "leaks": [leak.as_dict() for leak in leaks],
        "provenance": {
            "wordnet-splits": version("wordnet-splits"),
            "python": platform.python_version(),
            "pyarrow": pa.__version__,
        },
    }


def group_rows(recipe: Recipe, membership: Membership, selections: list[Selection]) -> list[dict[str, Any]]:
    """Return a row for the classes and each split of every group: published, expected, actual, status."""
    at = {(s.group.name, s.split): s for s in selections}
    rows = []
    for group in recipe.group:
        common = {"group": group.name, "role": group.role, "source": group.source, "view": group.view}
        count = len(membership.groups[group.name])
        published = group.published.get("classes")
        rows.append(
            {**common, "split": "classes", "published": published, "expected": count, "actual": count}
            | {"status": "complete", "note": group.note}
        )
        for split in ("train", "val", "test"):
            if (group.name, split) not in at:
                continue
            selection = at[group.name, split]
            awaiting = selection.awaiting
            actual = None if awaiting else selection.count
            short = actual is not None and actual != selection.expected
            status = (
                f"awaiting {awaiting.source}"
                if awaiting
                else f"missing {(selection.expected or 0) - (actual or 0):,}"
                if short
                else "complete"
            )
            row = {**common, "split": split, "published": group.published.get(split)}
            row |= {"expected": selection.expected, "actual": actual, "status": status, "note": group.note}
            if awaiting:
                row["reason"] = awaiting.reason
            if selection.local:
                row["population"] = selection.population
            rows.append(row)
    return rows
