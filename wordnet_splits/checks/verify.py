"""Checking a manifest: its files, all that it says against the rules, its digests against pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from filecmp import cmp
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import ManifestError, Problem
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.checks.listing import awaited_lists
from wordnet_splits.checks.strange_files import strange_files
from wordnet_splits.finding import find_manifest
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
from wordnet_splits.manifest import GroupRow, Manifest, Part, altered, read_manifest
from wordnet_splits.manifest.diff import RowChanges, diff_manifests
from wordnet_splits.manifest.reading import altered_sources, while_steady
from wordnet_splits.recipe import Recipe, load_recipe, recipe_names
from wordnet_splits.sources import Source, open_source
from wordnet_splits.sources.roots import Roots, declare_roots
from wordnet_splits.taxonomy import Taxonomy, load

OTHER_ROWS = ("image-not-by-rule", "image-changed")
"""Problems of images that a manifest holds and the rules do not give."""
WORDING = "manifest.json says fingerprints.explanation is "
"""How the problem begins that evidence and distances are not those of a fresh build."""


@dataclass(frozen=True)
class CheckedGroup:
    """What was compared of the classes, or of the images of one split, of a group.

    Attributes
    ----------
    rule : classes that the rules give again, with the same label.
    ids : image ids drawn again from an inventory or a root, and equal.
    pixels : images that were read, or generated, and have the digest that is frozen.
    expected : how many there are to compare; None where not known.
    problems : how many were found here.
    """

    group: str
    split: str
    rule: int
    ids: int
    pixels: int
    expected: int | None
    problems: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``verify --json`` prints it."""
        return {name: value for name, value in vars(self).items() if name != "problems"}


@dataclass(frozen=True)
class LocatedProblem:
    """A problem, and the (split, group) that it is in; None where it concerns the whole."""

    problem: Problem
    part: Part | None = None


@dataclass(frozen=True)
class Verification(Tabular):
    """What was compared of one benchmark, and what did not agree; a row is a `CheckedGroup`.

    Attributes
    ----------
    groups : what the manifest says of its groups.
    unexpected : names under a root that are not ids of its source, and how often each.
    unread : sources of which no picture was read although a root is given, and why.
    """

    name: str
    groups: Sequence[GroupRow]
    checks: Sequence[CheckedGroup]
    problems: Sequence[Problem]
    unexpected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Say whether everything that was compared agreed."""
        return not self.problems

    def rows(self) -> list[dict[str, Any]]:
        """Return the fields of `CheckedGroup`."""
        return [dict(vars(check)) for check in self.checks]

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``verify --json`` prints it."""
        return {
            "name": self.name,
            "ok": self.ok,
            "groups": [check.as_dict() for check in self.checks],
            "problems": [problem.as_dict() for problem in self.problems],
            "unexpected": self.unexpected,
            "unread": self.unread,
        }


def verify_benchmark(
    name: str | Path,
    *,
    roots: Roots | None = None,
    manifests: Path | None = None,
    out: Path | None = None,
    workers: int = 1,
    taxonomy: Taxonomy | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Compare everything that a manifest says, but its provenance, with its tables and with a fresh build.

    Ids come from inventories, and from the roots given; ids that wait for a root are not compared. Pixels
    are compared where a root is given, and where the source is embedded or generated.

    Parameters
    ----------
    name : a frozen benchmark's name, or the folder of a manifest.
    roots : folder of each source whose pixels are to be compared.
    manifests : folder to look the manifest up in, else the usual ones.
    out : folder for a fresh build of the benchmark; a manifest equal to it byte for byte needs no further
        comparison.
    workers : processes that read images.

    Raises
    ------
    ManifestError : ``manifest.json`` or the class table is absent or malformed.
    SourceError : a root is not that of its source.

    Examples
    --------
    >>> found = verify("digits")
    >>> [(c.group, c.ids, c.pixels) for c in found.checks if c.split == "test"][0]
    ('digits-0-5', 360, 360)
    """
    folder = find_manifest(name, manifests)
    options = BuildOptions(roots or {}, workers=workers, progress=progress)
    once = partial(_verify_once, folder, recipe_of, options, out, taxonomy)
    return while_steady(folder, once, suspect=lambda found: not found.ok)


def verify_received(manifest: Manifest) -> list[Problem]:
    """Return what `verify_benchmark` objects to in a manifest of somebody else's, before it is taken.

    It is held to the shipped recipe of its name and version, else to the one that it holds. Evidence that
    another version of this program worded is no objection.
    """
    assert manifest.folder is not None
    verification = _verify_once(manifest.folder, _recipe_of_version, BuildOptions({}), None, None)
    reworded = manifest.data.provenance.get("wordnet-splits") != version("wordnet-splits")
    return [p for p in verification.problems if not (reworded and p.detail.startswith(WORDING))]


def _verify_once(
    folder: Path,
    recipe_for: Callable[[Manifest], Recipe],
    options: BuildOptions,
    out: Path | None,
    taxonomy: Taxonomy | None,
) -> Verification:
    frozen = read_manifest(folder)
    options = replace(options, local=frozen.name.endswith("@local"))
    if carried := altered_sources(frozen):
        return _verification(frozen, [_of_whole("fingerprint", text) for text in carried], None, {})
    with using_sources(frozen.own):
        declare_roots(options.roots)
        return _verify(frozen, recipe_for(frozen), options, out, taxonomy or load())


def _verify(
    frozen: Manifest, recipe: Recipe, options: BuildOptions, out: Path | None, taxonomy: Taxonomy
) -> Verification:
    resampled = "@seed=" in frozen.name
    if out is not None:
        built = build_benchmark(
            recipe,
            roots=options.roots,
            out=out,
            seed=frozen.data.seed if resampled else None,
            local=options.local,
            workers=options.workers,
            taxonomy=taxonomy,
            progress=options.progress,
        )
        assert frozen.folder is not None
        assert built.folder is not None
        if not _shows_pictures(recipe, options) and _same_bytes(frozen.folder, built.folder):
            images, generated = _counts_of(recipe, frozen)
            return _verification(frozen, [], images, generated, held=images)
    findings = [*(_of_whole(*whole) for whole in strange_files(frozen)), *_unreadable(frozen)]
    if any(finding.part for finding in findings):
        return _verification(frozen, findings, None, {})
    rules = decide(recipe, frozen.data.seed if resampled else recipe.seed, taxonomy)
    sources = {n: open_source(n, r) for n, r in sorted(options.roots.items()) if n in recipe.sources}
    selections, compared = _drawn(frozen, rules, sources, options)
    fresh, _ = assemble(rules, selections, taxonomy, resampled=resampled, strict=False)
    findings += differences(frozen, fresh)
    unread = unreadable_by_position(selections, sources, options)
    readable = {n: s for n, s in sources.items() if n not in unread}
    whole, pixels = _compare_pixels(selections, readable, options)
    findings += whole
    unexpected = unexpected_names(sources, {f.problem.source for f in whole})
    return _verification(frozen, findings, compared, pixels, unexpected, unread)


def _shows_pictures(recipe: Recipe, options: BuildOptions) -> bool:
    """Say whether pictures are at hand whose digests a build takes from an inventory."""
    embedded = (group for group in recipe.group if group.noise is None and generated_source(group))
    return bool(options.roots) or any(embedded)


def _same_bytes(a: Path, b: Path) -> bool:
    """Say whether two folders hold the same files."""
    names = [{p.relative_to(f).as_posix() for p in f.rglob("*") if p.is_file()} for f in (a, b)]
    return names[0] == names[1] and all(cmp(a / name, b / name, shallow=False) for name in names[0])


def _counts_of(recipe: Recipe, frozen: Manifest) -> tuple[dict[Part, int], dict[Part, int]]:
    """Return the images of each part of a manifest that a build gave again, and those it generated."""
    noise = {group.name for group in recipe.group if group.noise is not None}
    images: dict[Part, int] = {(row.split, row.group): row.rows for row in frozen.data.fingerprints.images}
    return images, {part: rows for part, rows in images.items() if part[1] in noise}


def recipe_of(manifest: Manifest) -> Recipe:
    """Return the recipe to check a manifest against: the shipped one of its name, else the one it holds.

    A shipped one that awaits a list is only the place for what a user imports under its name.
    """
    name = manifest.name.partition("@")[0]
    shipped = load_recipe(name) if name in recipe_names() else None
    return load_recipe(manifest) if shipped is None or awaited_lists(shipped) else shipped


def _recipe_of_version(manifest: Manifest) -> Recipe:
    recipe = recipe_of(manifest)
    return recipe if recipe.version == manifest.version else load_recipe(manifest)


def _unreadable(manifest: Manifest) -> Iterator[LocatedProblem]:
    for part, read_table in manifest.parts.items():
        try:
            read_table()
        except ManifestError as error:
            yield LocatedProblem(Problem("unreadable-table", "", None, None, error.line()), part)


def _of_whole(kind: str, detail: str) -> LocatedProblem:
    return LocatedProblem(Problem(kind, "", None, None, detail))


def _drawn(
    frozen: Manifest, rules: Rules, sources: Mapping[str, Source], options: BuildOptions
) -> tuple[list[Selection], dict[Part, int]]:
    """Return the images as the rules draw them, and how many of each part could be drawn.

    Where the rules wait for a root that is not given, the frozen images stand; where a digest is known from
    pixels alone, the frozen one does.
    """
    recipe, groups = rules.recipe, rules.membership.groups
    rows: dict[Part, GroupRow] = {(row.split, row.group): row for row in frozen.groups}
    selections = select_images(recipe, rules.seed, groups, {})
    for selection in selections if options.local else ():
        row = rows.get((selection.split, selection.group.name))
        if row is not None and row.population is not None and selection.awaiting is None:
            # a local build took what a root held of the inventory: only such a root says which images
            selection.awaiting = Awaiting(selection.group.source, "drawn from what a root held")
            selection.images, selection.digests, selection.expected = {}, {}, None
    if sources and any(s.awaiting is not None for s in selections):
        rooted = select_images(
            recipe, rules.seed, groups, sources, local=options.local, progress=options.progress
        )
        # a root shows what was not known; that a manifest could now be completed is not a fault
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


def differences(frozen: Manifest, fresh: Manifest) -> list[LocatedProblem]:
    """Return a finding for everything in which a manifest differs from itself, or from a fresh one."""
    altered_fields = [_of_whole("fingerprint", text) for text in altered(frozen)]
    return [*altered_fields, *_other_rows(frozen, fresh), *_other_fields(frozen, fresh)]


def _other_rows(frozen: Manifest, fresh: Manifest) -> list[LocatedProblem]:
    """Return a finding for each class and image that is not as the rules give it."""
    difference = diff_manifests(frozen, fresh)
    findings = []
    for kind, rows in _differences(difference.classes):
        for row in rows:
            problem = Problem(f"class-{kind}", row["source"], row["class_id"], None, _say(row))
            findings.append(LocatedProblem(problem, ("classes", row["group"])))
    for kind, rows in _differences(difference.images):
        for row in rows:
            problem = Problem(f"image-{kind}", row["source"], row["class_id"], row["image_id"], _say(row))
            findings.append(LocatedProblem(problem, (row["split"], row["group"])))
    return findings


def _differences(changes: RowChanges) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        ("not-by-rule", changes.only_a),
        ("not-frozen", changes.only_b),
        ("changed", [{**r["a"], "by rule": r["b"]} for r in changes.changed]),
    ]


def _say(row: Mapping[str, Any]) -> str:
    text = ", ".join(f"{k} {row[k]}" for k in ("role", "group", "split", "label") if k in row)
    return text + (f"; by rule {_say(row['by rule'])}" if "by rule" in row else "")


def _other_fields(frozen: Manifest, fresh: Manifest) -> list[LocatedProblem]:
    """Return a finding for each field of ``manifest.json`` that a fresh build fills otherwise."""
    stored, computed = ({**m.data.as_dict(), "provenance": None} for m in (frozen, fresh))
    groups = [(row.split, row.group) for row in frozen.groups]
    parts = list(frozen.parts)
    findings = []
    for path, here, there in _unequal(stored, computed):
        places = groups if path[0] == "groups" else parts if path[:2] == ("fingerprints", "images") else []
        index = next((step for step in path if isinstance(step, int)), None)
        part = places[index] if index is not None and index < len(places) else None
        where = ".".join(map(str, path))
        problem = Problem("field", "", None, None, f"manifest.json says {where} is {here}, by rule {there}")
        findings.append(LocatedProblem(problem, part))
    return findings


def _unequal(a: Any, b: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield the path of each leaf that differs, or of the list or object whose keys do, with both values."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from _unequal(a[key], b[key], (*path, key))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for n, (item_a, item_b) in enumerate(zip(a, b, strict=True)):
            yield from _unequal(item_a, item_b, (*path, n))
    elif a != b or type(a) is not type(b):
        yield path, a, b


def _compare_pixels(
    selections: Sequence[Selection], sources: Mapping[str, Source], options: BuildOptions
) -> tuple[list[LocatedProblem], dict[Part, int]]:
    """Read the images of the roots at hand and of embedded sources; count those that have their digest."""
    findings: list[LocatedProblem] = []
    pixels: Counter[Part] = Counter()
    by_source: dict[str, list[Selection]] = {}
    for selection in (s for s in selections if s.awaiting is None):
        if selection.group.noise is not None:  # generated, and so read, when it was drawn
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
        right, wrong = read_digests(
            source, classes, digests, workers=options.workers, progress=options.progress
        )
        pixels.update(part_of[i] for i in right if i in digests)
        findings += [LocatedProblem(problem, part_of.get(problem.image_id or "")) for problem in wrong]
    return findings, dict(pixels)


def _verification(
    frozen: Manifest,
    findings: Sequence[LocatedProblem],
    compared: Mapping[Part, int] | None,
    pixels: Mapping[Part, int],
    unexpected: Mapping[str, Mapping[str, int]] | None = None,
    unread: Mapping[str, str] | None = None,
    *,
    held: Mapping[Part, int] | None = None,
) -> Verification:
    """Count what was compared; ``held`` are the rows of each part, counted where not given."""
    if held is None:
        held = {part: read_table().num_rows for part, read_table in frozen.parts.items()} if compared else {}
    problems = Counter(finding.part for finding in findings)
    other_rows = Counter(f.part for f in findings if f.problem.kind in OTHER_ROWS)
    classes = Counter(frozen.classes["group"].to_pylist())
    checks = []
    for row in frozen.groups:
        part = (row.split, row.group)
        rule = max(0, classes[row.group] - problems["classes", row.group]) if compared is not None else 0
        rows = held.get(part, 0)
        ids = min((compared or {}).get(part, 0), rows - other_rows[part])
        checks.append(
            CheckedGroup(
                row.group, row.split, rule, ids, min(rows, pixels.get(part, 0)), row.expected, problems[part]
            )
        )
    every = [finding.problem for finding in findings]
    return Verification(frozen.name, list(frozen.groups), checks, every, unexpected or {}, unread or {})
