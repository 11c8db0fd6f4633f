"""Checking a frozen manifest: its files against its fingerprints, it against the rules, and its pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wordnet_splits.build import Build, Options, build_recipe
from wordnet_splits.errors import ManifestError, Problem, unknown
from wordnet_splits.files import locked, restore
from wordnet_splits.manifest import (
    GroupRow,
    Manifest,
    altered,
    find_manifest,
    load_manifest,
    read_manifest,
    write_manifest,
)
from wordnet_splits.manifest.diff import diff_manifests
from wordnet_splits.progress import Progress
from wordnet_splits.recipe import Recipe, load_recipe
from wordnet_splits.taxonomy import Taxonomy

SHOWN = 50


@dataclass
class Verification:
    """The outcome for one benchmark: ok when there is no problem."""

    name: str
    groups: list[GroupRow]
    problems: list[Problem] = field(default_factory=list)
    unexpected: dict[str, dict[str, int]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Say whether everything agreed."""
        return not self.problems


def verify(
    name: str | Path,
    *,
    roots: Mapping[str, Path] | None = None,
    manifests: Path | None = None,
    workers: int = 1,
    taxonomy: Taxonomy | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Check a frozen manifest against its fingerprints and the rules, and against raw data where given.

    Parameters
    ----------
    roots : folder of each source whose pixels are to be compared.
    manifests : folder to look the manifest up in, else the usual ones.
    """
    frozen = read_manifest(find_manifest(name, manifests))
    problems = check_files(frozen)
    options = Options(roots or {}, allow_missing=True, workers=workers, progress=progress)
    options.known_digests = known_digests(frozen)
    built = build_recipe(recipe_of(frozen), options, taxonomy)
    problems += check_rules(frozen, built)
    problems += built.problems
    return Verification(frozen.name, list(frozen.groups), problems, built.unexpected, built.unread)


def recipe_of(manifest: Manifest) -> Recipe:
    """Return the recipe to check a manifest against: the shipped one of its name, else the one it holds."""
    from wordnet_splits.recipe import recipe_names

    if manifest.name in recipe_names():
        return load_recipe(manifest.name)
    return load_recipe(manifest)


def known_digests(manifest: Manifest) -> dict[tuple[str, str], bytes]:
    """Return the frozen digest of every image that has one, by (source, image_id)."""
    known: dict[tuple[str, str], bytes] = {}
    for table in (read() for read in manifest.parts.values()):
        columns = (table.column(c).to_pylist() for c in ("source", "image_id", "digest"))
        known |= {(s, i): d for s, i, d in zip(*columns, strict=True) if d is not None}
    return known


def check_files(manifest: Manifest) -> list[Problem]:
    """Recompute a manifest's fingerprints from its tables; return a problem for each that differs."""
    return [Problem("fingerprint", "", None, None, detail) for detail in altered(manifest)]


def check_rules(frozen: Manifest, built: Build) -> list[Problem]:
    """Compare a frozen manifest with one just built from the rules.

    A part that only one of them has is compared with nothing where the other awaits its source.
    """
    fresh = built.manifest
    both = frozen.parts.keys() & fresh.parts.keys()
    left_out = {(p.source, p.image_id) for p in built.problems}
    difference = diff_manifests(_only(frozen, both), _only(fresh, both))
    problems = []
    for kind, rows in _differences(difference["classes"]):
        problems += [Problem(f"class-{kind}", r["source"], r["class_id"], None, _say(r)) for r in rows]
    for kind, rows in _differences(difference["images"]):
        problems += [
            Problem(f"image-{kind}", r["source"], r["class_id"], r["image_id"], _say(r))
            for r in rows
            if (r["source"], r["image_id"]) not in left_out
        ]
    if not problems and frozen.data.fingerprints.explanation != fresh.data.fingerprints.explanation:
        problems.append(
            Problem("explanation", "", None, None, "the rules now give another evidence or distance")
        )
    return problems


def _only(manifest: Manifest, parts: set[tuple[str, str]]) -> Manifest:
    kept = {p: read for p, read in manifest.parts.items() if p in parts}
    return Manifest(manifest.data, manifest.classes, kept, manifest.folder)


def _differences(found: Mapping[str, list[Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        ("not-by-rule", found["only_a"]),
        ("not-frozen", found["only_b"]),
        ("changed", [{**r["a"], "by rule": r["b"]} for r in found["changed"]]),
    ]


def _say(row: Mapping[str, Any]) -> str:
    text = ", ".join(f"{k} {row[k]}" for k in ("role", "group", "split", "label") if k in row)
    return text + (f"; by rule {_say(row['by rule'])}" if "by rule" in row else "")


def freeze(name: str, *, built: Path, manifests: Path) -> Path:
    """Copy a verified build with nothing missing into ``manifests`` and return its folder.

    Under one version only nulls may be filled: a value that changes needs ``version + 1`` in the recipe.
    The provenance of an existing manifest stays where no fingerprint changes.

    Raises
    ------
    UnknownNameError : there is no such build; near names are offered.
    ManifestError : the build is incomplete, local, of another seed, damaged, or changes a frozen value.
    """
    if not (built / name / "manifest.json").is_file():
        raise unknown("build", name, (f.parent.name for f in built.glob("*/manifest.json")), where=str(built))
    manifest = load_manifest(built / name)
    where = str(built / name)
    if "@" in manifest.name:
        raise ManifestError(
            f"{manifest.name} is never frozen", where=where, hint="build it without --seed and --local"
        )
    if manifest.data.missing:
        raise ManifestError(
            f"{len(manifest.data.missing):,} images are missing",
            where=where,
            hint="complete the roots and build again",
        )
    folder = manifests / manifest.name
    with locked(folder, busy="another `freeze` is writing here"):
        restore(folder)
        if (manifests / manifest.name / "manifest.json").is_file():
            before = load_manifest(manifests / manifest.name)
            check_succession(before, manifest)
            if before.data.fingerprints == manifest.data.fingerprints:
                same = {"provenance": before.data.provenance}
                manifest.data = manifest.data.model_copy(update=same)
        return write_manifest(manifest, manifests)


def check_succession(before: Manifest, after: Manifest) -> None:
    """Raise ManifestError where ``after`` changes what ``before`` holds under the same version."""
    if after.version != before.version:
        return
    lost = [f"{s}/{g}" for s, g in before.parts.keys() - after.parts.keys()]
    both = _only(before, set(before.parts)), _only(after, set(before.parts) & set(after.parts))
    difference = diff_manifests(*both)
    undigested = [f"{s}/{g}" for s, g in before.parts if _loses_digests(before, after, (s, g))]
    if lost or undigested:
        raise ManifestError(
            f"{', '.join(sorted(lost + undigested))} would be lost",
            where=after.name,
            hint="build with the roots it was completed with",
        )
    if not difference["same"]:
        rows = difference["classes"]["changed"] + difference["images"]["changed"]
        count = sum(len(r) for part in ("classes", "images") for r in difference[part].values())
        example = f", first {rows[0]['a']}" if rows else ""
        raise ManifestError(
            f"{count:,} frozen rows would change{example}",
            where=after.name,
            hint="raise `version` in the recipe and say why in the changelog",
        )


def _loses_digests(before: Manifest, after: Manifest, part: tuple[str, str]) -> bool:
    if part not in after.parts:
        return False
    held_before, held_after = (m.parts[part]().column("digest") for m in (before, after))
    return bool(held_before.null_count < held_after.null_count)
