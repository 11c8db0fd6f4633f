"""Pulling of published benchmarks, from the Hub or from a folder; each is verified before it is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from wordnet_splits.base.errors import HubError, ManifestError, Problem, unknown
from wordnet_splits.base.files import locked, replacing_folder, write_json
from wordnet_splits.base.parquet import LARGEST_TABLE
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.untrusted import LARGEST_TEXT, path_below
from wordnet_splits.benchmark.manifest import Manifest, read_manifest
from wordnet_splits.benchmark.manifest.carried import carried_files
from wordnet_splits.benchmark.manifest.diff import changed_values
from wordnet_splits.benchmark.manifest.metadata import check_data
from wordnet_splits.benchmark.manifest.parts import manifest_files
from wordnet_splits.benchmark.manifest.places import CHANGELOG, shipped_data
from wordnet_splits.remote.address import Address, FolderAddress
from wordnet_splits.remote.repository import Repository, benchmarks_among

Verify = Callable[[Manifest], Sequence[Problem]]
RECORD = "pulled.json"
INCOMING = ".incoming"


class Store(Protocol):
    """Published files, listed and fetched: of a `Repository` of the Hub, or of a folder with checksums."""

    def where(self, path: str = "", *, commit: str = "") -> str:
        """Return a place in it as an error names it."""

    def resolve(self, revision: str) -> str | None:
        """Return the identifier of the files at a revision, None if the revision does not exist."""

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag."""

    def files(self, commit: str) -> Mapping[str, Any]:
        """Return all files at a commit by path."""

    def fetch(self, file: Any, commit: str, folder: Path, *, largest: int) -> Path:
        """Return a file below ``folder``, received unless it is there already."""


@dataclass(frozen=True)
class Pulled(Tabular):
    """Pulled benchmarks, their commit and their folder.

    Attributes
    ----------
    shipped : names of those that come with this program in the same version.
    dropped : benchmarks of an earlier pull that were removed, since the repository no longer has them.
    """

    address: Address | FolderAddress
    commit: str
    folder: Path
    benchmarks: Sequence[Manifest]
    shipped: Sequence[str]
    dropped: Sequence[str] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return name, version, fingerprint and folder of each, and whether it is shipped here."""
        return [
            {
                "benchmark": m.name,
                "version": m.version,
                "fingerprint": m.fingerprint,
                "folder": str(m.folder),
                "as_shipped": m.name in self.shipped,
            }
            for m in self.benchmarks
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the result as ``hub pull --json`` prints it."""
        return {
            "address": str(self.address),
            "commit": self.commit,
            "folder": str(self.folder),
            "benchmarks": self.rows(),
            "dropped": list(self.dropped),
        }


def pull(
    address: Address | FolderAddress,
    *,
    verify: Verify,
    store: Store | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
) -> Pulled:
    """Download published benchmarks, verify them, and move those without problems to ``out``.

    After an interruption the same call continues with the files that were received.

    Parameters
    ----------
    address : a repository or a folder, or a benchmark in a repository or folder.
    store : the files to download; by default the files of the Hub repository.
    verify : returns the problems of a received manifest, which is refused for the first one, as
        `wordnet_splits.benchmark.checks.verify.verify_received` does.
    out : folder for the benchmarks; by default one in the user's cache, by repository and revision.

    Raises
    ------
    MissingPackageError : huggingface_hub is not installed.
    HubError : the Hub refuses, has no such repository, revision or benchmark; a path leaves its folder; the
        tag has moved since it was pulled.
    ManifestError : a benchmark does not verify, or contradicts the shipped one of its name and version.
    """
    progress = progress or Silent()
    repository = Repository(address.repo) if store is None else store
    commit = repository.resolve(address.revision)
    if commit is None:
        raise HubError(
            f"the Hub has no such dataset, or none at {address.revision} that you may read",
            where=repository.where(),
            hint="look at its name and its tags; for a private one `hf auth login`",
        )
    folder = address.folder if out is None else out
    with locked(folder, busy="another `hub pull` is writing here"):
        earlier = _record(folder, address, commit, repository)
        files = repository.files(commit)
        names = _select_names(files, address, repository, commit)
        incoming = folder / INCOMING / commit
        with progress.task(f"pulling {address.repo}", len(names)) as task:
            manifests = []
            for name in names:
                manifests.append(_receive(name, files, repository, commit, incoming, folder, verify))
                task.advance(note=name)
        dropped = sorted(earlier.keys() - set(benchmarks_among(files)))
        for name in dropped:
            shutil.rmtree(path_below(folder, name), ignore_errors=True)
        retained = {name: at for name, at in earlier.items() if name not in dropped}
        record = {"repo": address.repo, "revision": address.revision, "commit": commit}
        write_json(folder / RECORD, {**record, "benchmarks": retained | dict.fromkeys(names, commit)})
        shutil.rmtree(folder / INCOMING, ignore_errors=True)
    shipped = [m.name for m in manifests if _is_shipped(m)]
    return Pulled(address, commit, folder, manifests, shipped, dropped)


def _record(folder: Path, address: Address | FolderAddress, commit: str, repository: Store) -> dict[str, str]:
    """Return the commit of each benchmark that was pulled into a folder earlier.

    Raises
    ------
    HubError : the folder was pulled from another repository, or a tag has moved to another commit since.
    """
    if not (folder / RECORD).is_file():
        return {}
    record = read_json(folder / RECORD)
    if (record.get("repo"), record.get("revision")) != (address.repo, address.revision):
        earlier_address = f"{record.get('repo')}@{record.get('revision')}".removesuffix("@")
        raise HubError(
            f"the folder holds {earlier_address}",
            where=str(folder),
            hint="name another folder by --out",
        )
    if record.get("commit") != commit and address.revision in repository.tags():
        raise HubError(
            f"the tag {address.revision} was at {str(record.get('commit'))[:12]} when it was pulled, "
            f"and is at {commit[:12]} now",
            where=repository.where(),
            hint=f"a tag never moves: ask its publisher, or remove {folder} to take what is there now",
        )
    benchmarks = record.get("benchmarks")
    return dict(benchmarks) if isinstance(benchmarks, dict) else {}


def _select_names(
    files: Mapping[str, Any], address: Address | FolderAddress, repository: Store, commit: str
) -> list[str]:
    names = benchmarks_among(files)
    if address.benchmark is not None:
        if address.benchmark not in names:
            raise unknown("benchmark", address.benchmark, names, where=repository.where(commit=commit))
        return [address.benchmark]
    if not names:
        raise HubError("it has no benchmark", where=repository.where(commit=commit))
    return names


def _receive(
    name: str,
    files: Mapping[str, Any],
    repository: Store,
    commit: str,
    incoming: Path,
    folder: Path,
    verify: Verify,
) -> Manifest:
    """Download a benchmark into ``incoming``, verify it, and copy it into ``folder``."""

    def fetch(inner: str, largest: int = LARGEST_TABLE) -> Path:
        path = f"{name}/{inner}"
        if path not in files:
            raise HubError(f"{inner} is not there", where=repository.where(name, commit=commit))
        return repository.fetch(files[path], commit, incoming, largest=largest)

    where = repository.where(f"{name}/manifest.json", commit=commit)
    data = check_data(read_json(fetch("manifest.json"), error=ManifestError), where)
    for carried in carried_files(data.fingerprints.sources, data.fingerprints.pair_tables):
        fetch(carried.path, carried.largest)
    received = {path: fetch(path) for path in manifest_files(data)}
    if f"{name}/{CHANGELOG}" in files:
        received[CHANGELOG] = fetch(CHANGELOG, LARGEST_TEXT)
    manifest = read_manifest(incoming / name)
    _check(manifest, name, repository.where(name, commit=commit), verify)
    with replacing_folder(folder / name) as part:
        for path, file in received.items():
            (part / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, part / path)
    return read_manifest(folder / name)


def _check(manifest: Manifest, name: str, where: str, verify: Verify) -> None:
    """Raise ManifestError for a manifest that does not verify, or is not the shipped one of its name."""
    refused = "no file was kept: report this to the publisher"
    if manifest.name != name:
        raise ManifestError(f"the folder holds the manifest of {manifest.name}", where=where, hint=refused)
    shipped = shipped_data(manifest.name)
    if shipped is not None and (changed := changed_values(shipped, manifest.data)):
        raise ManifestError(
            f"version {manifest.version} is shipped with this program, and {changed[0]} differ here",
            where=where,
            hint="nothing was taken: it is another benchmark under its name",
        )
    for problem in verify(manifest):
        raise ManifestError(problem.detail, where=where, hint=refused)


def _is_shipped(manifest: Manifest) -> bool:
    """Return whether a benchmark of the same name and version is shipped with this program."""
    shipped = shipped_data(manifest.name)
    return shipped is not None and shipped.version == manifest.version
