"""Releases: verified benchmarks and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError, ManifestError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.benchmark.checks.freeze import require_publishable
from wordnet_splits.benchmark.checks.verification import Verification
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import run_for_each
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.loading import CHANGELOG, version_of, whole_folder
from wordnet_splits.benchmark.manifest.parts import manifest_files
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog.declarations import merge_declarations
from wordnet_splits.hub.attribution import check_attributed

RESULTS = "results"
CARD = "README.md"
FENCE = "---\n"


@dataclass(frozen=True)
class Release:
    """Benchmarks, in the order of their names, and files.

    Attributes
    ----------
    files : path in the repository -> file here; without the card.
    metadata, about : metadata and text of the ``README.md`` next to the benchmarks; empty without it.
    leaderboard : whether a repository of the Hub gets ``eval.yaml``, which requests a leaderboard.
    framework : identifier of the evaluation framework in ``eval.yaml``, one that the Hub lists; optional.
    """

    benchmarks: Sequence[Manifest]
    files: dict[str, Path]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    leaderboard: bool = True
    framework: str | None = None

    @property
    def title(self) -> str:
        """The title of a release in a card without a repository."""
        return self.names[0] if len(self.names) == 1 else f"{len(self.names):,} benchmarks"

    @property
    def names(self) -> list[str]:
        """Return the names of the benchmarks."""
        return [manifest.name for manifest in self.benchmarks]


def collect_release(
    parents: Sequence[Path],
    *,
    roots: Mapping[str, Path] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Release:
    """Collect benchmarks from folders: of a manifest, or of several manifests with ``results``.

    Parameters
    ----------
    roots : folders of sources whose pixels are to be compared, and where users' sources are declared.

    Raises
    ------
    ManifestError : no manifest is found; two have the same name; or a manifest is of another draw or local,
        lacks images, licence or authors, has a class with an unconfirmed proposed synset, or does not verify.
    DataError : the metadata of ``README.md`` is not a YAML mapping.
    """
    folders = folders_at(parents)
    benchmarks: dict[str, Manifest] = {}
    for folder in folders:
        manifest = load_manifest(folder)
        require_publishable(manifest, action="published")
        if manifest.name in benchmarks:
            earlier_folder = benchmarks[manifest.name].folder
            raise ManifestError(
                f"{manifest.name} is in {earlier_folder}, too", where=str(folder), hint="give one"
            )
        benchmarks[manifest.name] = manifest
    verified = run_for_each(
        verify_benchmark,
        list(benchmarks.values()),
        task="verifying",
        roots=roots or {},
        workers=workers,
        progress=progress or Silent(),
    )
    for folder, verification in zip(folders, verified, strict=True):
        _check(verification, folder)
    merge_declarations(
        manifest.declarations for manifest in benchmarks.values()
    )  # a name means one dataset in a repository
    files = {path: file for m in benchmarks.values() for path, file in _files_of(m).items()}
    readme = ""
    for parent in parents:
        files |= {
            f"{RESULTS}/{file.relative_to(parent / RESULTS).as_posix()}": file
            for file in sorted((parent / RESULTS).rglob("*"))
            if file.is_file() and not file.name.startswith(".")
        }
        if (parent / CARD).is_file() and not (parent / "manifest.json").is_file():
            readme = readme or read_text(parent / CARD)
    metadata, about = _parts(readme)
    for manifest in benchmarks.values():
        check_attributed(manifest, metadata)
    return Release(
        [benchmarks[name] for name in sorted(benchmarks)], dict(sorted(files.items())), metadata, about
    )


def _parts(readme: str) -> tuple[dict[str, Any], str]:
    """Return the metadata and the text of a ``README.md``."""
    if not readme.startswith(FENCE):
        return {}, readme
    front, _, text = readme.removeprefix(FENCE).partition(f"\n{FENCE}")
    yaml = need("yaml", "hub", where=CARD)
    try:
        metadata = yaml.safe_load(front)
    except yaml.YAMLError as error:
        raise DataError(f"its metadata is not YAML: {str(error).splitlines()[0]}", where=CARD) from None
    if not isinstance(metadata, dict):
        raise DataError("its metadata is not a YAML mapping", where=CARD, hint="as in license: mit")
    return metadata, text


def folders_at(parents: Sequence[Path]) -> list[Path]:
    """Return the folders of manifests at or below some folders. Raises ManifestError if none is found."""
    folders: list[Path] = []
    for folder in parents:
        inside = [folder] if (folder / "manifest.json").is_file() else _below(folder)
        if not inside:
            raise ManifestError(
                "no manifest.json here or one folder below",
                where=str(folder),
                hint="give a folder written by `build` or `freeze`",
            )
        folders += inside
    return folders


def _below(folder: Path) -> list[Path]:
    files = (file for file in folder.glob("*/manifest.json") if file.is_file())
    return sorted(file.parent for file in files if version_of(file.parent.name) is None)


def _check(verification: Verification, folder: Path) -> None:
    if not verification.ok:
        problem, remaining = verification.problems[0], len(verification.problems) - 1
        raise ManifestError(
            f"it does not verify: {problem.detail}"
            + (f", and {remaining:,} more problems" if remaining else ""),
            where=str(folder),
            hint=f"see `wordnet-splits verify {folder}`",
        )


def _files_of(manifest: Manifest) -> dict[str, Path]:
    folder = whole_folder(manifest)
    names = manifest_files(manifest.data)
    if (folder / CHANGELOG).is_file():
        names.append(CHANGELOG)
    return {f"{manifest.name}/{name}": folder / name for name in names}
