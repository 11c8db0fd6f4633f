"""Freezing: a build that holds becomes the benchmark, and what is frozen never changes under its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import ManifestError, unknown
from wordnet_splits.base.files import locked, restore
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.checks.unconfirmed import check_confirmed
from wordnet_splits.finding import load_manifest
from wordnet_splits.hub.succession import changed_values
from wordnet_splits.manifest import Manifest, Part, write_manifest
from wordnet_splits.manifest.diff import diff_manifests
from wordnet_splits.recipe import recipe_names

RAISE = "raise `version` in the recipe and say why in the changelog"


@dataclass(frozen=True)
class Frozen(Tabular):
    """A benchmark that was frozen, and the folder that holds it now."""

    name: str
    version: int
    fingerprint: str | None
    folder: Path

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row: name, version, fingerprint and folder."""
        return [{**vars(self), "folder": str(self.folder)}]


def freeze(name: str, *, built: Path, manifests: Path) -> Frozen:
    """Copy a verified build with nothing missing into ``manifests``.

    Under one version only nulls may be filled: a value that changes needs ``version + 1`` in the recipe.
    The provenance of an existing manifest stays where no fingerprint changes.

    Raises
    ------
    UnknownNameError : there is no such build; near names are offered.
    ManifestError : it is not built, or the build is incomplete, local, of another seed, damaged, changes a
        frozen value, or holds a class whose proposed synset nobody confirmed.
    """
    if not (built / name / "manifest.json").is_file():
        if name in recipe_names():
            hint = f"build it first: wordnet-splits build {name} --out {built}"
            raise ManifestError(f"{name} is not built", where=str(built), hint=hint)
        raise unknown("build", name, (f.parent.name for f in built.glob("*/manifest.json")), where=str(built))
    manifest = load_final(built / name, never="frozen", as_shipped=False)
    folder = manifests / manifest.name
    with locked(folder, busy="another `freeze` is writing here"):
        restore(folder)
        if (manifests / manifest.name / "manifest.json").is_file():
            before = load_manifest(manifests / manifest.name, as_shipped=False, older=True)
            check_succession(before, manifest)
            if before.data.fingerprints == manifest.data.fingerprints:
                same = {"provenance": before.data.provenance}
                manifest.data = manifest.data.model_copy(update=same)
        return Frozen(
            manifest.name, manifest.version, manifest.fingerprint, write_manifest(manifest, manifests)
        )


def load_final(folder: Path, *, never: str, as_shipped: bool = True) -> Manifest:
    """Read a manifest that may be frozen or published.

    Parameters
    ----------
    never : what is not done with another draw or a local one, for the error.
    as_shipped : as of `load_manifest`.

    Raises
    ------
    ManifestError : as `load_manifest`; it is local or of another seed, images are missing, or a group holds a
        class whose proposed synset nobody confirmed.
    """
    manifest = load_manifest(folder, as_shipped=as_shipped)
    if "@" in manifest.name:
        raise ManifestError(
            f"{manifest.name} is never {never}",
            where=str(folder),
            hint="build it without --seed and --local",
        )
    if manifest.data.missing:
        raise ManifestError(
            f"{len(manifest.data.missing):,} images are missing",
            where=str(folder),
            hint="complete the roots and build again",
        )
    check_confirmed(manifest, never=never)
    return manifest


def check_succession(before: Manifest, after: Manifest) -> None:
    """Raise ManifestError where ``after`` changes what ``before`` holds under the same version."""
    if after.version != before.version:
        return
    lost = [f"{s}/{g}" for s, g in before.parts.keys() - after.parts.keys()]
    shared = _only(before, set(before.parts)), _only(after, set(before.parts) & set(after.parts))
    difference = diff_manifests(*shared)
    undigested = [f"{s}/{g}" for s, g in before.parts if _loses_digests(before, after, (s, g))]
    if lost or undigested:
        raise ManifestError(
            f"{', '.join(sorted(lost + undigested))} would be lost",
            where=after.name,
            hint="build with the roots it was completed with",
        )
    if not difference.same:
        rows = difference.classes.changed + difference.images.changed
        count = difference.classes.count + difference.images.count
        example = f", first {rows[0]['a']}" if rows else ""
        raise ManifestError(
            f"{count:,} frozen rows would change{example}",
            where=after.name,
            hint=RAISE,
        )
    if changed := changed_values(before.data, after.data):
        raise ManifestError(f"{changed[0]} would change", where=after.name, hint=RAISE)


def _loses_digests(before: Manifest, after: Manifest, part: Part) -> bool:
    if part not in after.parts:
        return False
    held_before, held_after = (m.parts[part]().column("digest") for m in (before, after))
    return bool(held_before.null_count < held_after.null_count)


def _only(manifest: Manifest, parts: set[Part]) -> Manifest:
    selected = {p: read_table for p, read_table in manifest.parts.items() if p in parts}
    return Manifest(manifest.data, manifest.classes, selected, manifest.folder)
