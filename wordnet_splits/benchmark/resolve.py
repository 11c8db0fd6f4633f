"""Names, paths and addresses of benchmarks, resolved to a `Manifest` or a `Recipe`.

A name refers to a frozen benchmark and is looked up in the given folder, the folder in
``WORDNET_SPLITS_MANIFESTS``, the checkout and the installed package, in this order. ``mine@v1`` refers to an
earlier version of ``mine``. An address on the Hub (``hf://datasets/ORG/NAME@v1/BENCHMARK``) is pulled and
verified on first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from wordnet_splits.base.errors import ManifestError, SplitsError, UnknownNameError, unknown
from wordnet_splits.benchmark.manifest import Manifest, read_manifest
from wordnet_splits.benchmark.manifest.loading import (
    Check,
    frozen_folder,
    frozen_folders,
    manifest_names,
    read_declarations,
    shipped_data,
)
from wordnet_splits.benchmark.recipe import Recipe, class_set_names, declared_by, load_recipe, recipe_names
from wordnet_splits.datasets.catalog.declarations import Declaration, merge_declarations

HUB = "hf://"
"""Beginning of an address on the Hub."""


def is_path(name: str | Path) -> bool:
    """Return whether a benchmark is given as a path, ``./digits`` or ``build/mine``; ``digits`` is a name."""
    text = str(name)
    return isinstance(name, Path) or "/" in text or os.sep in text or text in (".", "..")


def find_manifest(name: str | Path, manifests: Path | None = None) -> Path:
    """Return the folder of a manifest given by its frozen name, as a path, or by its address.

    A bare name never means a folder of the working directory, so that no folder takes the place of a frozen
    benchmark; a `Path` always is one.

    Raises
    ------
    UnknownNameError : no such manifest; near names are offered.
    HubError : it is not pulled yet, and cannot be now.
    """
    if str(name).startswith(HUB):
        return _pulled_folder(str(name))
    if is_path(name):
        path = Path(name)
        if (path / "manifest.json").is_file():
            return path
        if path.is_dir():
            hint = "give a folder written by `build`"
            raise ManifestError("no manifest.json here", where=str(path), hint=hint)
        parent = str(name).rstrip("/").removesuffix(path.name)  # "./" stays
        beside = [parent + file.parent.name for file in path.parent.glob("*/manifest.json")]
        frozen = [] if path.name not in manifest_names(manifests) else [path.name]
        error = unknown("benchmark", str(name), [*beside, *frozen])
        raise UnknownNameError(error.what, near=error.near or frozen, hint="there is no such folder")
    folder = frozen_folder(str(name), manifests)
    if folder is None:
        raise unknown_benchmark(str(name), frozen_folders(manifests, earlier=True))
    return folder


def _pulled_folder(text: str) -> Path:
    """Return the folder of the benchmark at an address, which is pulled on first use.

    A benchmark pulled from a tag is read without a connection. A benchmark pulled from a branch keeps its
    commit until ``wordnet-splits hub pull`` is run again.
    """
    from wordnet_splits.remote import SCHEME, parse_address

    address = parse_address(text, where="benchmark")
    if address.benchmark is None:
        hint = f"as in {SCHEME}ORG/NAME@v1/unknown-cifar"
        raise SplitsError(f"the address {text!r} has no benchmark", hint=hint)
    folder = address.folder / address.benchmark
    if not (folder / "manifest.json").is_file():
        from wordnet_splits.benchmark.checks.verification import verify_received
        from wordnet_splits.benchmark.pulling import pull

        pull(address, verify=verify_received)
    return folder


def unknown_benchmark(name: str, names: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown benchmark; a folder of that name here, or one in it, is offered."""
    error = unknown("benchmark", name, names)
    if name and not is_path(name) and Path(name).is_dir():
        found = [f for pattern in ("", "*/") for f in sorted(Path(name).glob(f"{pattern}manifest.json"))]
        if found:
            hint = f"for the folder here, write {' or '.join(f'./{file.parent}' for file in found[:3])}"
            return UnknownNameError(error.what, hint=hint, near=error.near)
    return error


def load_manifest(
    benchmark: Manifest | str | Path,
    manifests: Path | None = None,
    *,
    check: Check = "all",
    as_shipped: bool = True,
) -> Manifest:
    """Read a manifest by its name, folder or address; a `Manifest` is returned as it is.

    Parameters
    ----------
    check : tables to compare with their fingerprints, as in `read_manifest`.
    as_shipped : with ``check="all"``, refuse a manifest with the name and version of a shipped benchmark and
        other content.

    Raises
    ------
    UnknownNameError : no such manifest; near names are offered.
    ManifestError : a file is absent or malformed, a table differs from its fingerprint, or ``as_shipped``
        refuses the manifest.
    HubError : the benchmark is not pulled yet, and cannot be pulled now.
    """
    if isinstance(benchmark, Manifest):
        return benchmark
    manifest = read_manifest(find_manifest(benchmark, manifests), check=check)
    if as_shipped and check == "all":
        check_as_shipped(manifest)
    return manifest


def check_as_shipped(manifest: Manifest) -> None:
    """Raise ManifestError for a manifest that contradicts the shipped one of its name and version."""
    shipped = shipped_data(manifest.name)
    if shipped is None or shipped == manifest.data:
        return
    from wordnet_splits.benchmark.manifest.frozen_values import contradictions

    if changed := contradictions(shipped, manifest.data):
        raise ManifestError(
            f"differs from the shipped {shipped.name} version {shipped.version}: {'; '.join(changed[:3])}",
            where=str(manifest.folder),
            hint="choose another name, or raise its version",
        )


def find_recipe(benchmark: Recipe | Manifest | str | Path, manifests: Path | None = None) -> Recipe:
    """Return the recipe of a benchmark, given as to `load_recipe` or to `load_manifest`.

    Raises
    ------
    UnknownNameError : no such benchmark or file; near names are offered.
    RecipeError, ManifestError : as of `load_recipe` and `load_manifest`.
    """
    if _names_recipe(benchmark):
        return load_recipe(benchmark)
    assert isinstance(benchmark, str | Path)
    if has_manifest(benchmark, manifests):
        return load_recipe(load_manifest(benchmark, manifests))
    names = {*recipe_names(), *class_set_names(), *frozen_folders(manifests, earlier=True)}
    raise unknown_benchmark(str(benchmark), names)


def declarations_of(
    *benchmarks: Recipe | Manifest | str | Path, manifests: Path | None = None
) -> dict[str, Declaration]:
    """Return the datasets that recipes declare or manifests carry, without further checks of these.

    Takes the parameters of `find_recipe`; a name without a benchmark has no declarations.

    Raises
    ------
    RecipeError, ManifestError : a file is malformed.
    DataError : two benchmarks have another dataset under one name.
    """
    return merge_declarations(_declarations_of(benchmark, manifests) for benchmark in benchmarks)


def _declarations_of(
    benchmark: Recipe | Manifest | str | Path, manifests: Path | None
) -> Mapping[str, Declaration]:
    if _names_recipe(benchmark):
        return declared_by(benchmark)
    assert isinstance(benchmark, str | Path)
    if has_manifest(benchmark, manifests):
        return read_declarations(find_manifest(benchmark, manifests))
    if is_path(benchmark):
        find_manifest(benchmark, manifests)  # refused before a root of its dataset is
    return {}


def _names_recipe(benchmark: Recipe | Manifest | str | Path) -> bool:
    """Return whether `load_recipe` accepts it: a recipe, a manifest, a TOML file or a shipped name."""
    if isinstance(benchmark, Recipe | Manifest) or str(benchmark).endswith(".toml"):
        return True
    return benchmark in (*recipe_names(), *class_set_names())


def has_manifest(name: str | Path, manifests: Path | None) -> bool:
    """Return whether a frozen benchmark has this name, path or address."""
    if is_path(name):
        return str(name).startswith(HUB) or (Path(name) / "manifest.json").is_file()
    return frozen_folder(str(name), manifests) is not None
