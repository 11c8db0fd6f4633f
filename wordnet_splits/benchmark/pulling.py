"""Published benchmarks, pulled from the Hub or from a folder; each is verified before it is kept."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base.errors import DataError, HubError, ManifestError, Problem, SplitsError, unknown
from wordnet_splits.base.files import locked, replacing, replacing_folder, write_json
from wordnet_splits.base.names import printable
from wordnet_splits.base.parquet import LARGEST_TABLE
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.untrusted import LARGEST_TEXT, path_below, read_text, sha256_of
from wordnet_splits.benchmark.manifest import Manifest, read_manifest
from wordnet_splits.benchmark.manifest.carried import carried_files
from wordnet_splits.benchmark.manifest.frozen_values import changed_values
from wordnet_splits.benchmark.manifest.loading import CHANGELOG, shipped_data
from wordnet_splits.benchmark.manifest.metadata import check_data
from wordnet_splits.benchmark.manifest.parts import manifest_files
from wordnet_splits.remote import LARGEST, Address, FolderAddress, Repository, benchmarks_among, parse_address

Verify = Callable[[Manifest], Sequence[Problem]]
RECORD = "pulled.json"
INCOMING = ".incoming"


SUMS: Final = "SHA256SUMS"
"""The list of checksums of a published folder, as ``sha256sum -c`` reads it."""
_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *]([^\\\0]+)")
_TELL: Final = "fetch the folder again, or report this to the publisher"


@dataclass(frozen=True)
class ListedFile:
    """A file of a published folder: its path and the SHA-256 of its bytes."""

    path: str
    sha256: str

    def is_at(self, path: Path) -> bool:
        """Return whether the file at ``path`` is this one."""
        return path.is_file() and sha256_of(path, largest=LARGEST) == self.sha256


class PublishedFolder:
    """The files that the ``SHA256SUMS`` of a folder lists, with the methods of a `Repository`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        file = Path(folder) / SUMS
        if not file.is_file():
            hint = "give a folder written by `hub publish --out`; a manifest's folder is read as it is"
            raise ManifestError(f"no {SUMS} here", where=folder, hint=hint)
        text = read_text(file, error=ManifestError)
        self._commit = hashlib.sha256(text.encode()).hexdigest()[:40]
        sums = parse_sums(text, self.where(SUMS))
        self._files = {path: ListedFile(path, digest) for path, digest in sums.items()}

    def where(self, path: str = "", *, commit: str = "") -> str:
        """Return a location in the folder, for errors."""
        return f"{self._folder}/{path}".rstrip("/")

    def resolve(self, revision: str) -> str:
        """Return the identifier of the files: the start of the SHA-256 of ``SHA256SUMS``."""
        return self._commit

    def tags(self) -> dict[str, str]:
        """Return nothing: a folder has no tags."""
        return {}

    def files(self, commit: str) -> Mapping[str, ListedFile]:
        """Return all listed files by path."""
        return self._files

    def fetch(self, file: ListedFile, commit: str, folder: Path, *, largest: int = LARGEST) -> Path:
        """Return a file below ``folder``, copied unless it is there already."""
        path = path_below(folder, file.path)
        if file.is_at(path):
            return path
        path.unlink(missing_ok=True)
        original = path_below(Path(self._folder), file.path)
        digest = sha256_of(original, largest=largest, error=ManifestError)
        if digest != file.sha256:
            message = f"its SHA-256 is {digest}, {SUMS} says {file.sha256}"
            raise ManifestError(message, where=str(original), hint=_TELL)
        with replacing(path) as part:
            shutil.copyfile(original, part)
        return path


def parse_sums(text: str, where: str) -> dict[str, str]:
    """Return the SHA-256 of each path that a ``SHA256SUMS`` lists.

    Raises ManifestError if a line is malformed, a path leaves the folder or is there twice.
    """

    def wrong_line(number: int, problem: str) -> ManifestError:
        return ManifestError(f"line {number}: {problem}", where=where, hint=_TELL)

    digests: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise wrong_line(number, "is not a SHA-256, two spaces and a path")
        digest, path = match.groups()
        try:
            path_below(Path("folder"), path)
        except DataError as error:
            raise wrong_line(number, error.what) from None
        if path in digests:
            raise wrong_line(number, f"lists {printable(path)!r} twice")
        digests[path] = digest
    return digests


def sums_of(files: Mapping[str, Path]) -> str:
    """Return the text of ``SHA256SUMS`` for files by their path in a folder.

    Raises DataError if a path holds a line break or a backslash.
    """
    for path in files:
        if not path.isprintable() or "\\" in path:
            raise DataError(f"{printable(path)!r} cannot be listed in {SUMS}", hint="rename the file")
    return "".join(f"{sha256_of(file, largest=LARGEST)}  {path}\n" for path, file in sorted(files.items()))


Store = Repository | PublishedFolder


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
    out: Path | None = None,
    progress: Progress | None = None,
) -> Pulled:
    """Download published benchmarks, verify them, and move those without problems to ``out``.

    After an interruption the same call continues with the files that were received.

    Parameters
    ----------
    address : a repository or a folder, or a benchmark in a repository or folder.
    verify : returns the problems of a received manifest, which is refused for the first one, as
        `wordnet_splits.benchmark.checks.verification.verify_received` does.
    out : folder for the benchmarks; by default one in the user's cache, by repository and revision.

    Raises
    ------
    MissingPackageError : huggingface_hub is not installed.
    HubError : the Hub refuses, has no such repository, revision or benchmark; a path leaves its folder; the
        tag has moved since it was pulled.
    ManifestError : a benchmark does not verify, or contradicts the shipped one of its name and version.
    """
    progress = progress or Silent()
    is_folder = isinstance(address, FolderAddress)
    repository: Store = PublishedFolder(address.repo) if is_folder else Repository(address.repo)
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
        names = benchmarks_among(files)
        if not names:
            raise HubError("the repository has no benchmark", where=repository.where(commit=commit))
        if address.benchmark is not None:
            if address.benchmark not in names:
                raise unknown("benchmark", address.benchmark, names, where=repository.where(commit=commit))
            names = [address.benchmark]
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
    shipped = [m.name for m in manifests if (data := shipped_data(m.name)) and data.version == m.version]
    return Pulled(address, commit, folder, manifests, shipped, dropped)


def _record(folder: Path, address: Address | FolderAddress, commit: str, repository: Store) -> dict[str, str]:
    """Return the commit of each benchmark that was pulled into a folder earlier."""
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
            hint=f"a tag never moves: ask its publisher, or remove {folder} to pull the new files",
        )
    benchmarks = record.get("benchmarks")
    return dict(benchmarks) if isinstance(benchmarks, dict) else {}


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
            raise HubError(f"{inner} is missing", where=repository.where(name, commit=commit))
        return repository.fetch(files[path], commit, incoming, largest=largest)

    where = repository.where(f"{name}/manifest.json", commit=commit)
    data = check_data(read_json(fetch("manifest.json"), error=ManifestError), where)
    largest = {file.path: file.largest for file in carried_files(data.fingerprints)}
    received = {path: fetch(path, largest.get(path, LARGEST_TABLE)) for path in manifest_files(data)}
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
            hint="no file was kept: it is another benchmark under the same name",
        )
    for problem in verify(manifest):
        raise ManifestError(problem.detail, where=where, hint=refused)


def published_address(text: str | Path, *, where: str) -> Address | FolderAddress:
    """Return the address of a repository of the Hub, or of a folder of published benchmarks.

    A text is a folder where it begins with ``/``, ``./``, ``../`` or ``~``; ``ORG/NAME`` is a repository.
    """
    if isinstance(text, Path) or text.startswith(("/", "./", "../", "~")) or text in (".", ".."):
        path = Path(text).expanduser()
        folder = path.resolve()
        if not path.is_dir():
            raise ManifestError("no such folder", where=str(path))
        if not (folder / SUMS).is_file() and (folder.parent / SUMS).is_file():
            return FolderAddress(str(folder.parent), folder.name)
        return FolderAddress(str(folder))
    if (Path(text) / SUMS).is_file():
        message = f"{text!r} is a folder here, and a name on the Hub is written the same way"
        hint = f"give ./{text} for it, or hf://datasets/ORG/NAME"
        raise SplitsError(message, where=where, hint=hint)
    return parse_address(text, where=where)
