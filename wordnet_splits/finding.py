"""Where a benchmark's name leads: to a frozen manifest, to a folder, or to one of the Hub.

A manifest is looked up in the folder given, in ``WORDNET_SPLITS_MANIFESTS``, in the checkout and in the
installed package, in that order. One of the Hub has a name of its own, ``hf://datasets/ORG/NAME@v1/BENCHMARK``,
so that nobody's benchmark takes the place of another; it is pulled once, and checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from wordnet_splits.base.errors import ManifestError, UnknownNameError, unknown
from wordnet_splits.hub.address import SCHEME
from wordnet_splits.hub.local import folder_of
from wordnet_splits.hub.succession import contradictions
from wordnet_splits.manifest.manifest import Manifest
from wordnet_splits.manifest.reading import Check, read_manifest
from wordnet_splits.manifest.shipped import shipped_data, shipped_folders

ENVIRONMENT = "WORDNET_SPLITS_MANIFESTS"


def manifest_folders(manifests: Path | None = None) -> Iterator[Path]:
    """Yield the folders that may hold manifests, first match first."""
    if manifests is not None:
        yield manifests
        return
    if ENVIRONMENT in os.environ:
        yield Path(os.environ[ENVIRONMENT])
    yield from shipped_folders()


def manifest_names(manifests: Path | None = None) -> tuple[str, ...]:
    """Return the benchmarks that have a manifest, sorted."""
    found = {
        f.parent.name
        for folder in manifest_folders(manifests)
        for f in folder.glob("*/manifest.json")
        if f.is_file()
    }
    return tuple(sorted(found))


def is_path(name: str | Path) -> bool:
    """Say whether a benchmark is given as a path, ``./digits`` or ``build/mine``; ``digits`` is a name."""
    text = str(name)
    return isinstance(name, Path) or "/" in text or os.sep in text or text in (".", "..")


def find_manifest(name: str | Path, manifests: Path | None = None) -> Path:
    """Return the folder of a manifest given by its frozen name, as a path, or by its address on the Hub.

    A bare name never means a folder of the working directory, so that no folder takes the place of a frozen
    benchmark; a `Path` always is one.

    Raises
    ------
    UnknownNameError : no such manifest; near names are offered.
    HubError : it is not pulled yet, and cannot be now.
    """
    if str(name).startswith(SCHEME):
        return folder_of(str(name))
    if is_path(name):
        path = Path(name)
        if (path / "manifest.json").is_file():
            return path
        if path.is_dir():
            hint = "give a folder written by `build`"
            raise ManifestError("no manifest.json here", where=str(path), hint=hint)
        raise unknown_benchmark("manifest", str(name), manifest_names(manifests))
    for folder in manifest_folders(manifests):
        if name and (folder / name / "manifest.json").is_file():
            return folder / name
    raise unknown_benchmark("manifest", str(name), manifest_names(manifests))


def unknown_benchmark(what: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown benchmark; a folder of that name here is offered as a path."""
    error = unknown(what, name, known)
    if name and not is_path(name) and (Path(name) / "manifest.json").is_file():
        hint = f"a bare name is that of a frozen benchmark; the folder here is ./{name}"
        return UnknownNameError(error.what, hint=hint, near=error.near)
    return error


def load_manifest(
    benchmark: Manifest | str | Path,
    manifests: Path | None = None,
    *,
    check: Check = "all",
    as_shipped: bool = True,
    older: bool = False,
) -> Manifest:
    """Read a manifest by its name, folder or address; a `Manifest` is returned as it is.

    Parameters
    ----------
    check : what is compared with the fingerprints, as in `wordnet_splits.manifest.reading.read_manifest`.
    as_shipped : with ``check="all"``, refuse what bears the name and version of a benchmark that comes with
        this program, and says otherwise.
    older : read a manifest that was frozen before evaluations had a fingerprint, too.

    Raises
    ------
    UnknownNameError : no such manifest; near names are offered.
    ManifestError : a file is absent or malformed, a table is not the one that was fingerprinted, or
        ``as_shipped``.
    HubError : it is not pulled yet, and cannot be now.
    """
    if isinstance(benchmark, Manifest):
        return benchmark
    manifest = read_manifest(find_manifest(benchmark, manifests), check=check, older=older)
    if as_shipped and check == "all":
        check_as_shipped(manifest)
    return manifest


def check_as_shipped(manifest: Manifest) -> None:
    """Raise ManifestError for another benchmark under the name and version of one that is shipped."""
    shipped = shipped_data(manifest.name)
    if shipped is not None and (changed := contradictions(shipped, manifest.data)):
        raise ManifestError(
            f"{shipped.name} version {shipped.version} is shipped with this program, "
            f"and differs here: {'; '.join(changed[:3])}",
            where=str(manifest.folder),
            hint="it is another benchmark under its name: give it a name of its own, or raise its version",
        )
