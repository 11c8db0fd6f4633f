"""Freezing: a verified build becomes the benchmark, whose values never change under one version."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.files import locked, replacing_folder, restore, write_text
from wordnet_splits.base.names import counted
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.manifest import Manifest, Part, altered, read_manifest, write_manifest
from wordnet_splits.benchmark.manifest.diff import compare_manifests
from wordnet_splits.benchmark.manifest.frozen_values import changed_values
from wordnet_splits.benchmark.manifest.loading import CHANGELOG
from wordnet_splits.benchmark.recipe import is_shipped, load_recipe
from wordnet_splits.datasets.catalog.declarations import LOCAL
from wordnet_splits.datasets.catalog.table import load_declared_catalog

RAISE_VERSION = "raise `version` in the recipe and say why: `freeze -m WHY`"


@dataclass(frozen=True)
class Frozen(Tabular):
    """A frozen benchmark and its folder.

    Attributes
    ----------
    absent : keys that ``[about]`` of its recipe lacks.
    unchanged : whether it was frozen before, the same in everything, and its changelog has its version.
    """

    name: str
    version: int
    fingerprint: str | None
    folder: Path
    absent: Sequence[str] = ()
    unchanged: bool = False

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row: name, version, fingerprint, folder, absent keys, whether it is unchanged."""
        return [{**vars(self), "folder": str(self.folder), "absent": list(self.absent)}]


def freeze(manifest: Manifest, *, manifests: Path, message: str | None = None) -> Frozen:
    """Copy a verified build with nothing missing into ``manifests``.

    An earlier version of a benchmark that is not shipped stays, as ``NAME@v1``.

    Under one version only nulls may be filled: a value that changes needs ``version + 1`` in the recipe.
    The provenance of an existing manifest stays where no fingerprint changes.

    Parameters
    ----------
    message : the change and its reason, a line for this version in the manifest's ``CHANGELOG.md``. It is
        not added if nothing has changed and the version has a line.

    Raises
    ------
    ManifestError : the build is incomplete, local, of another seed, damaged, changes a frozen value, or holds
        a class whose proposed synset is not confirmed; or a later version is frozen.
    """
    require_publishable(manifest, action="frozen")
    if message is not None and not message.strip():
        raise ManifestError("the message is empty", where=manifest.name, hint="say what changed, and why")
    shipped = is_shipped(load_recipe(manifest))
    folder, unchanged = manifests / manifest.name, False
    with locked(folder, busy="another `freeze` is writing here"):
        restore(folder)
        if (folder / "manifest.json").is_file():
            try:
                before = read_manifest(folder, check="all")
            except ManifestError as error:
                hint = f"move {folder} away, and freeze again"
                raise ManifestError(error.what, where=error.where, hint=hint) from error
            check_succession(before, manifest)
            if before.version < manifest.version and not shipped:
                _keep(folder, before, manifests)
            if before.data.fingerprints == manifest.data.fingerprints:
                provenance = {"provenance": before.data.provenance}
                manifest = replace(manifest, data=manifest.data.model_copy(update=provenance))
            unchanged = before.data == manifest.data and any(
                line.startswith(f"version {before.version}: ") for line in changes_of(before)
            )
        written = write_manifest(manifest, manifests)
        if message is not None and not unchanged:
            _add_change(written, manifest, " ".join(message.split()))
    absent = () if shipped else manifest.data.about.absent
    return Frozen(manifest.name, manifest.version, manifest.fingerprint, written, absent, unchanged)


def _keep(folder: Path, before: Manifest, manifests: Path) -> None:
    """Copy the frozen version in a folder to the folder ``NAME@v1``, unless it is there already."""
    kept = manifests / f"{before.name}@v{before.version}"
    with locked(kept, busy="another `freeze` is writing here"):
        restore(kept)
        if (kept / "manifest.json").is_file():
            if read_manifest(kept).data.fingerprints == before.data.fingerprints:
                return
            hint = f"move {kept} away, or raise the version"
            raise ManifestError(f"another version {before.version} is kept", where=str(kept), hint=hint)
        with replacing_folder(kept) as part:
            shutil.copytree(folder, part, dirs_exist_ok=True)


def _add_change(folder: Path, manifest: Manifest, message: str) -> None:
    """Append a line to a manifest's changelog, unless the changelog has it."""
    line = f"version {manifest.version}: {message}"
    changes = changes_of(replace(manifest, folder=folder))
    if line not in changes:
        lines = "".join(f"- {change}\n" for change in [*changes, line])
        write_text(folder / CHANGELOG, f"# Changes of {manifest.name}\n\n{lines}")


def changes_of(manifest: Manifest) -> list[str]:
    """Return the lines of a manifest's changelog, ``version 2: why``; [] without a changelog."""
    path = None if manifest.folder is None else manifest.folder / CHANGELOG
    if path is None or not path.is_file():
        return []
    lines = read_text(path, error=ManifestError).splitlines()
    return [line.removeprefix("- ") for line in lines if line.startswith("- ")]


def require_publishable(manifest: Manifest, *, action: str) -> None:
    """Raise ManifestError unless a manifest may be frozen or published.

    A manifest is refused if a table was altered, if it is local or of another seed, if images are missing, or
    if a group holds a class whose proposed synset is not confirmed.

    Parameters
    ----------
    action : the refused act, "frozen" or "published".
    """
    where = str(manifest.folder or manifest.name)
    for problem in altered(manifest):
        raise ManifestError(problem, where=where, hint="fetch it or build it again")
    if "@" in manifest.name:
        hint = "build it without --seed and --local"
        raise ManifestError(f"{manifest.name} is never {action}", where=where, hint=hint)
    if count := len(manifest.data.missing):
        hint = "complete the roots and build again"
        raise ManifestError(f"{count:,} images are missing", where=where, hint=hint)
    check_confirmed(manifest, action=action)


def unconfirmed_classes(manifest: Manifest) -> dict[str, list[str]]:
    """Return the classes in groups with unconfirmed synsets, by carried dataset.

    Each is described by its id, its synsets, their confidence and its line in the catalog.
    """
    columns = manifest.classes.select(["source", "class_id", "role"]).to_pylist()
    grouped = {(row["source"], row["class_id"]) for row in columns if row["role"] != "excluded"}
    unconfirmed = {}
    for name, declared in manifest.declarations.items():
        catalog = load_declared_catalog(declared)
        classes = [c for c in catalog if (name, c.class_id) in grouped and c.is_unconfirmed]
        if classes:
            unconfirmed[name] = [
                f"{item.class_id} as {' '.join(item.wnids)}"
                + ("" if item.confidence is None else f" at confidence {item.confidence:.2f}")
                + f" (line {catalog.line(item.class_id)})"
                for item in classes
            ]
    return unconfirmed


def check_confirmed(manifest: Manifest, *, action: str) -> None:
    """Raise ManifestError, naming every class and its line, if a group holds an unconfirmed class.

    Parameters
    ----------
    action : the refused act, "frozen" or "published".
    """
    for name, classes in unconfirmed_classes(manifest).items():
        # the catalog to edit is that of the dataset, if it is known here, not the copy in the manifest
        declared = LOCAL.find(name)
        catalog = "this catalog" if declared else f"your {name}.tsv, of which this is the copy in the build,"
        raise ManifestError(
            f"{manifest.name} is never {action} while nobody has confirmed the synsets proposed for "
            f"{counted(len(classes), 'class')} of {name}: {'; '.join(classes)}",
            where=str((declared or manifest.declarations[name]).catalog_file),
            hint=f"in each of these lines of {catalog} write `hand` for `proposed`, with the synset that is "
            "meant, or answer `wordnet-splits catalog make` on a terminal; then build again",
        )


def check_succession(before: Manifest, after: Manifest) -> None:
    """Raise ManifestError if ``after`` changes a frozen value under its version, or is of an earlier one."""
    if after.version < before.version:
        raise ManifestError(
            f"version {before.version} is frozen, and this is version {after.version}",
            where=after.name,
            hint="raise `version` in the recipe; an earlier version is NAME@v1, and stays as it is",
        )
    if after.version > before.version:
        return
    lost = [f"{s}/{g}" for s, g in before.parts.keys() - after.parts.keys()]
    shared = _only(before, set(before.parts)), _only(after, set(before.parts) & set(after.parts))
    difference = compare_manifests(*shared)
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
        reason = f"{count:,} frozen rows would change{example}"
        raise ManifestError(reason, where=after.name, hint=RAISE_VERSION)
    if changed := changed_values(before.data, after.data):
        raise ManifestError(f"{changed[0]} would change", where=after.name, hint=RAISE_VERSION)


def _loses_digests(before: Manifest, after: Manifest, part: Part) -> bool:
    if part not in after.parts:
        return False
    nulls_before, nulls_after = (m.parts[part]().column("digest").null_count for m in (before, after))
    return bool(nulls_before < nulls_after)


def _only(manifest: Manifest, parts: set[Part]) -> Manifest:
    selected = {p: read_table for p, read_table in manifest.parts.items() if p in parts}
    return replace(manifest, parts=selected)
