"""Verification of a manifest: its files, its fields against the rules, its digests against images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

from wordnet_splits.base.errors import ManifestError, Problem, SplitsError
from wordnet_splits.base.files import locked, restore
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.parquet import LARGEST_TABLE
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.benchmark.construct import Build, build_recipe
from wordnet_splits.benchmark.manifest import GroupRow, Manifest, Part, altered, write_manifest
from wordnet_splits.benchmark.manifest.diff import compare_manifests
from wordnet_splits.benchmark.manifest.loading import altered_sources
from wordnet_splits.benchmark.manifest.parts import companions, manifest_files
from wordnet_splits.benchmark.recipe import Recipe, awaited_lists, load_recipe, recipe_names
from wordnet_splits.datasets.sources.roots import Roots, declare_roots

LocatedProblem = tuple[Problem, Part | None]
"""A problem and the (split, group) that it is in; None for a problem of the whole manifest."""

CROISSANT: Final = "croissant.json"
EXPLANATION_DIFFERS: Final = "manifest.json says fingerprints.explanation is "
"""Beginning of the problem that evidence or distances differ from a fresh build."""
IMAGE_PROBLEMS = ("image-not-by-rule", "image-changed")
"""Kinds of problems of images that a manifest holds and the rules do not give."""


@dataclass(frozen=True)
class CheckedGroup(Jsonable):
    """Number of comparisons in a group: of its classes, or of the images of a split.

    Attributes
    ----------
    rule : classes that the rules give again, with the same label.
    ids : image ids drawn again from an inventory or a root, and equal.
    pixels : images that were read or generated and have the frozen digest.
    expected : number of images or classes to compare; None if unknown.
    problems : number of problems.
    """

    omitted: ClassVar = ("problems",)

    group: str
    split: str
    rule: int
    ids: int
    pixels: int
    expected: int | None
    problems: int


@dataclass(frozen=True)
class Verification(Tabular):
    """Comparison of a benchmark with its rules and images; a row is a `CheckedGroup`.

    Attributes
    ----------
    groups : the groups as the manifest states them.
    unexpected : names under a root that are not ids of its source, and how often each.
    unread : sources with a root whose images were not read, and why.
    """

    name: str
    groups: Sequence[GroupRow]
    checks: Sequence[CheckedGroup]
    problems: Sequence[Problem]
    unexpected: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Return whether all comparisons agreed."""
        return not self.problems

    def rows(self) -> list[dict[str, Any]]:
        """Return the fields of `CheckedGroup`."""
        return [dict(vars(check)) for check in self.checks]

    def as_dict(self) -> dict[str, Any]:
        """Return the verification as ``verify --json`` prints it."""
        return {
            "name": self.name,
            "ok": self.ok,
            "groups": [check.as_dict() for check in self.checks],
            "problems": [problem.as_dict() for problem in self.problems],
            "unexpected": self.unexpected,
            "unread": self.unread,
        }


def verify_received(manifest: Manifest) -> list[Problem]:
    """Return the problems of a manifest from the Hub.

    It is compared with the shipped recipe of its name and version, otherwise with the recipe in it. Evidence
    and distances are compared only if this version of the program wrote them.
    """

    def recipe_for(received: Manifest) -> Recipe:
        recipe = recipe_of(received)
        return recipe if recipe.version == received.version else load_recipe(received)

    problems = verify_manifest(manifest, recipe_for, {}).problems
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


def verify_manifest(
    frozen: Manifest,
    recipe_for: Callable[[Manifest], Recipe],
    roots: Roots,
    out: Path | None = None,
    **options: Any,
) -> Verification:
    """Compare a manifest in a folder with its tables and a fresh build, as `verify_benchmark`."""
    if carried := altered_sources(frozen):
        return _verification(frozen, [of_whole("fingerprint", text) for text in carried])
    declare_roots(roots, frozen.datasets)
    problems = list(folder_problems(frozen))
    if any(part for _, part in problems):
        return _verification(frozen, problems)
    build = build_recipe(
        recipe_for(frozen),
        roots,
        given=frozen,
        seed=frozen.data.seed if "@seed=" in frozen.name else None,
        local=frozen.name.endswith("@local"),
        **options,
    )
    problems += differences(frozen, build.manifest)
    problems += _located(build.problems, build.manifest)
    if out is not None and not problems:
        with locked(out / build.manifest.name, busy="another build is writing here"):
            restore(out / build.manifest.name)
            write_manifest(build.manifest, out)
    return _verification(frozen, problems, build)


def _located(problems: Sequence[Problem], manifest: Manifest) -> list[LocatedProblem]:
    """Return the problems of a manifest's images, each with the part that holds the image."""
    part_of: dict[tuple[str, str | None], Part] = {}
    for part, read_table in manifest.parts.items() if problems else ():
        columns = (read_table()[name].to_pylist() for name in ("source", "image_id"))
        part_of |= dict.fromkeys(zip(*columns, strict=True), part)
    keys = [(problem.source, problem.image_id) for problem in problems]
    return [(p, part_of[key]) for p, key in zip(problems, keys, strict=True) if key in part_of]


def _verification(
    frozen: Manifest, located: Sequence[LocatedProblem], build: Build | None = None
) -> Verification:
    """Count the comparisons in each group; without ``build`` nothing was compared with the rules."""
    per_part = Counter(part for _, part in located)
    wrong_images = Counter(part for problem, part in located if problem.kind in IMAGE_PROBLEMS)
    classes = Counter(frozen.classes["group"].to_pylist())
    checks = []
    for group in frozen.groups:
        part = (group.split, group.group)
        rule = ids = pixels = 0
        if build is not None:
            count = frozen.parts[part]().num_rows if part in frozen.parts else 0
            rule = max(0, classes[group.group] - per_part["classes", group.group])
            ids = min(build.drawn.get(part, 0), count - wrong_images[part])
            pixels = min(count, build.pixels.get(part, 0))
        checks.append(
            CheckedGroup(group.group, group.split, rule, ids, pixels, group.expected, per_part[part])
        )
    problems = [problem for problem, _ in located]
    unexpected, unread = ({}, {}) if build is None else (build.unexpected, build.unread)
    return Verification(frozen.name, list(frozen.groups), checks, problems, unexpected, unread)


def of_whole(kind: str, detail: str) -> LocatedProblem:
    """Return a problem of the whole manifest."""
    return Problem(kind, "", None, None, detail), None


def folder_problems(manifest: Manifest) -> Iterator[LocatedProblem]:
    """Yield the problems of a manifest's folder: its name, stray files, unreadable tables, stale metadata."""
    folder = manifest.folder
    assert folder is not None
    if folder.resolve().name not in (manifest.name, f"{manifest.name}@v{manifest.version}"):
        yield of_whole("name", f"the folder {folder.name} holds the manifest of {manifest.name}")
    files = manifest_files(manifest.data)
    expected = [*files, *(path.relative_to(folder).as_posix() for path in companions(folder))]
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        is_parent = path.is_dir() and any(name.startswith(f"{relative}/") for name in expected)
        if relative not in expected and not is_parent:
            yield of_whole("stray-file", f"{relative} belongs to no manifest")
    for kind, detail in _stale_metadata(folder, files):
        yield of_whole(kind, detail)
    for part, read_table in manifest.parts.items():
        try:
            read_table()
        except ManifestError as error:
            yield Problem("unreadable-table", "", None, None, error.line()), part


def _stale_metadata(folder: Path, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a problem if ``croissant.json`` is malformed or describes other files."""
    path = folder / CROISSANT
    if not path.is_file():
        return
    try:
        described = read_json(path, error=ManifestError)
        sums = {item.get("contentUrl"): item.get("sha256") for item in described["distribution"]}
        digests = {name: sha256_of(folder / name, largest=LARGEST_TABLE) for name in files if name in sums}
    except (SplitsError, AttributeError, KeyError, TypeError):
        yield "stale-file", f"{CROISSANT} cannot be read: `wordnet-splits hub croissant` writes it"
        return
    for name in sorted(digests):
        if sums[name] != digests[name]:
            again = "`wordnet-splits hub croissant` writes it again"
            yield "stale-file", f"{CROISSANT} describes another {name}: {again}"


def differences(frozen: Manifest, fresh: Manifest) -> list[LocatedProblem]:
    """Return a problem for each difference of a manifest from its fingerprints and from a fresh build."""
    fingerprints = [of_whole("fingerprint", text) for text in altered(frozen)]
    return [*fingerprints, *_row_problems(frozen, fresh), *_field_problems(frozen, fresh)]


def _row_problems(frozen: Manifest, fresh: Manifest) -> Iterator[LocatedProblem]:
    """Yield a problem for each class and image that differs from the fresh build."""
    difference = compare_manifests(frozen, fresh)
    for table, changes in (("class", difference.classes), ("image", difference.images)):
        kinds = {
            "not-by-rule": changes.only_a,
            "not-frozen": changes.only_b,
            "changed": [{**row["a"], "by rule": row["b"]} for row in changes.changed],
        }
        for kind, rows in kinds.items():
            for row in rows:
                ids = row["source"], row["class_id"], row.get("image_id")
                part = row.get("split", "classes"), row["group"]
                yield Problem(f"{table}-{kind}", *ids, _row_words(row)), part


def _row_words(row: Mapping[str, Any]) -> str:
    text = ", ".join(f"{k} {row[k]}" for k in ("role", "group", "split", "label") if k in row)
    return text + (f"; by rule {_row_words(row['by rule'])}" if "by rule" in row else "")


def _field_problems(frozen: Manifest, fresh: Manifest) -> Iterator[LocatedProblem]:
    """Yield a problem for each field of ``manifest.json`` that has another value in the fresh build."""
    stored, computed = ({**m.data.as_dict(), "provenance": None} for m in (frozen, fresh))
    groups = [(row.split, row.group) for row in frozen.groups]
    parts = list(frozen.parts)
    for path, recorded, by_rule in _unequal(stored, computed):
        rows = groups if path[0] == "groups" else parts if path[:2] == ("fingerprints", "images") else []
        index = next((step for step in path if isinstance(step, int)), None)
        part = rows[index] if index is not None and index < len(rows) else None
        where = ".".join(map(str, path))
        detail = f"manifest.json says {where} is {recorded}, by rule {by_rule}"
        yield Problem("field", "", None, None, detail), part


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
