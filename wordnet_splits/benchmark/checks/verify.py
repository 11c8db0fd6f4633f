"""Comparison of benchmarks, given by name or folder, with their rules and images or with each other."""

from __future__ import annotations

from pathlib import Path

from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.progress import Progress
from wordnet_splits.benchmark.checks.verification import Verification, recipe_of, verify_manifest
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.diff import ManifestDiff, compare_manifests
from wordnet_splits.benchmark.manifest.loading import read_again, while_steady
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.wordnet.taxonomy import Taxonomy


def verify_benchmark(
    manifest: Manifest | str | Path,
    *,
    roots: Roots | None = None,
    out: Path | None = None,
    workers: int = 1,
    taxonomy: Taxonomy | str | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Compare a manifest, except its provenance, with its tables and with a fresh build.

    Ids are compared with inventories and with the roots given; unknown ids are not compared. Pixels
    are compared if their source has a root, is embedded or is generated. A manifest that a build replaces
    meanwhile is read and compared again.

    Parameters
    ----------
    manifest : a benchmark's name or folder, or a manifest read from a folder.
    roots : folder of each source whose pixels are compared.
    out : folder to write the fresh build into, as ``<name>/``, if there are no problems.
    workers : processes that read images.

    Raises
    ------
    ManifestError : the manifest is in no folder, or ``manifest.json`` or the class table is malformed.
    SourceError : a root holds another dataset.

    Examples
    --------
    >>> verification = verify_benchmark("digits")
    >>> [(c.group, c.ids, c.pixels) for c in verification.checks if c.split == "test"][0]
    ('digits-0-5', 360, 360)
    """
    manifest = load_manifest(manifest, check="none")
    folder = manifest.folder
    if folder is None:
        raise ManifestError("is not in a folder", where=manifest.name, hint="build it with `out`")

    options = {"workers": workers, "taxonomy": taxonomy, "progress": progress}

    def verify() -> Verification:
        return verify_manifest(read_again(manifest), recipe_of, roots or {}, out, **options)

    return while_steady(folder, verify, suspect=lambda verification: not verification.ok)


def diff_manifests(a: Manifest | str | Path, b: Manifest | str | Path) -> ManifestDiff:
    """Compare the classes and images of two manifests, each given itself or by its name or folder.

    Rows are identified by (source, class_id, group), or (source, image_id, split). Digests differ only where
    both are known.
    """
    return compare_manifests(load_manifest(a, as_shipped=False), load_manifest(b, as_shipped=False))
