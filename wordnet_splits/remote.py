"""Dataset repositories of the Hub: files, tags and commits, through `huggingface_hub`.

The library manages the token (``hf auth login``, ``HF_TOKEN``); this package never requests, reads or shows
it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import platformdirs

from wordnet_splits.base.errors import DataError, HubError, HubUnreachableError, OutputError, SplitsError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import check_file, open_untrusted, path_below, sha256_of

LARGEST: Final = 1 << 40
PIECE: Final = 1 << 20
ENDPOINT: Final = "HF_ENDPOINT"
"""Environment variable of `huggingface_hub` with another address than the Hub's."""


@dataclass(frozen=True)
class RemoteFile:
    """A file as the Hub describes it: size, and SHA-256 if it is large, otherwise Git's SHA-1."""

    path: str
    size: int
    sha256: str | None
    blob: str

    def is_at(self, path: Path) -> bool:
        """Return whether the file at ``path`` is this one."""
        if not path.is_file() or check_file(path, largest=LARGEST) != self.size:
            return False
        if self.sha256 is not None:
            return sha256_of(path, largest=LARGEST) == self.sha256
        return git_blob(path) == self.blob


def git_blob(path: Path) -> str:
    """Return Git's SHA-1 of a file's content."""
    size = check_file(path, largest=LARGEST)
    state = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with open_untrusted(path, largest=LARGEST) as file:
        while piece := file.read(PIECE):
            state.update(piece)
    return state.hexdigest()


class Repository:
    """A dataset repository by name, ``ORG/NAME``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._library = need("huggingface_hub", "hub", where=f"datasets/{name}")
        self._utils = need("huggingface_hub.utils", "hub", where=f"datasets/{name}")
        if not sys.stderr.isatty():
            self._utils.disable_progress_bars()
        self._api = self._library.HfApi(endpoint=os.environ.get(ENDPOINT) or None)

    def where(self, path: str = "", *, commit: str = "") -> str:
        """Return a location in the repository, for errors."""
        return f"datasets/{self.name}" + (f"@{commit}" if commit else "") + (f"/{path}" if path else "")

    def resolve(self, revision: str) -> str | None:
        """Return the commit of a revision; None if the revision or the repository does not exist.

        A private repository that this user may not see does not exist for them.
        """
        with self._asked():
            try:
                commit = str(self._api.repo_info(self.name, revision=revision, repo_type="dataset").sha)
            except self._utils.GatedRepoError:  # a RepositoryNotFoundError, too
                raise
            except (self._utils.RepositoryNotFoundError, self._utils.RevisionNotFoundError):
                return None
        if not re.fullmatch("[0-9a-f]{40}", commit):  # it names a folder
            raise self._strange(f"{printable(commit)!r} is not a commit", "")
        return commit

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag."""
        with self._asked():
            refs = self._api.list_repo_refs(self.name, repo_type="dataset")
            return {ref.name: ref.target_commit for ref in refs.tags}

    def files(self, commit: str) -> dict[str, RemoteFile]:
        """Return all files at a commit by path."""
        with self._asked():
            entries = list(
                self._api.list_repo_tree(self.name, recursive=True, revision=commit, repo_type="dataset")
            )
        files_by_path: dict[str, RemoteFile] = {}
        for entry in entries:
            if not hasattr(entry, "blob_id"):  # a folder
                continue
            path = str(entry.path)
            if path in files_by_path:
                raise self._strange(f"lists {printable(path)!r} twice", commit)
            try:
                path_below(Path("root"), path)
            except DataError:
                raise self._strange(f"the path {printable(path)!r} leaves its folder", commit) from None
            sha256 = str(entry.lfs.sha256) if entry.lfs else None
            with self._asked():  # a size that is not a number
                files_by_path[path] = RemoteFile(path, int(entry.size), sha256, str(entry.blob_id))
        return files_by_path

    def _strange(self, reason: str, commit: str) -> HubError:
        hint = "no file was kept: report this to the publisher"
        return HubError(reason, where=self.where(commit=commit), hint=hint)

    def card(self, file: RemoteFile, commit: str) -> dict[str, Any]:
        """Return the metadata at the top of a dataset card; empty without any."""
        path = self.cached(file, commit)
        with self._asked():
            metadata = self._library.metadata_load(path)
        return metadata if isinstance(metadata, dict) else {}

    def fetch(self, file: RemoteFile, commit: str, folder: Path, *, largest: int = LARGEST) -> Path:
        """Download a file below ``folder``, unless it is there, and return its path."""
        if file.size > largest:
            raise self._strange(f"{file.path} has {file.size:,} bytes, at most {largest:,} are read", commit)
        path = path_below(folder, file.path)
        if file.is_at(path):
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as stage:
            received = self._download(file, commit, local_dir=Path(stage))
            if file.is_at(received):
                received.replace(path)
                return path
            raise HubError(
                "what was received is not the file that the Hub describes",
                where=self.where(file.path, commit=commit),
                hint="it was removed: try again",
            )

    def cached(self, file: RemoteFile, commit: str, *, check: bool = True) -> Path:
        """Return a file in the cache of `huggingface_hub`, downloaded unless it is there.

        Parameters
        ----------
        check : compare its digest; without, its size alone.
        """
        folder = os.environ.get("HF_HUB_CACHE")
        cache = Path(folder).expanduser() if folder else huggingface_home() / "hub"
        path = self._download(file, commit, cache_dir=cache)
        if not (file.is_at(path) if check else path.stat().st_size == file.size):
            raise HubError(
                "is not the file that the Hub describes", where=str(path), hint="remove it, and try again"
            )
        return path

    def _download(self, file: RemoteFile, commit: str, **to: Path) -> Path:
        with self._asked():
            try:
                path = self._api.hf_hub_download(
                    self.name, file.path, repo_type="dataset", revision=commit, **to
                )
            except OSError as error:
                if error.filename is None or error.errno is None:  # of the network
                    raise
                reason = f"cannot be written: {os.strerror(error.errno)}"
                raise OutputError(reason, where=str(error.filename)) from error
        return Path(path)

    def create(self, *, private: bool) -> None:
        """Create the repository, unless it exists."""
        with self._asked(write=True):
            self._api.create_repo(self.name, repo_type="dataset", private=private, exist_ok=True)

    def commit(
        self, added: Mapping[str, Path], removed: Sequence[str], *, parent: str | None, message: str
    ) -> str:
        """Add and remove files in a single commit on the main branch, and return it.

        The Hub refuses if the branch has moved from ``parent``.
        """
        library = self._library
        operations: list[Any] = [library.CommitOperationAdd(path, str(file)) for path, file in added.items()]
        operations += [library.CommitOperationDelete(path) for path in removed]
        with self._asked(write=True):
            commit = self._api.create_commit(
                self.name, operations, commit_message=message, repo_type="dataset", parent_commit=parent
            )
        return str(commit.oid)

    def tag(self, name: str, commit: str) -> None:
        """Add a tag to a commit."""
        with self._asked(write=True):
            self._api.create_tag(self.name, tag=name, revision=commit, repo_type="dataset")

    @contextmanager
    def _asked(self, *, write: bool = False) -> Iterator[None]:
        """Turn exceptions of the library and of its HTTP client into one line."""
        try:
            yield
        except SplitsError:
            raise
        except Exception as error:
            raise self._failure(error, write=write) from None

    def _failure(self, error: Exception, *, write: bool) -> HubError:
        """Return the error for a failure of the network, of the Hub, or of a permission."""
        status, reason = _status(error), _first_line(error)
        where = self.where()
        if status is None and isinstance(error, KeyError | TypeError | ValueError):
            return HubUnreachableError(
                "the Hub's answer is not of the expected form", where=where, hint="try again later"
            )
        if status is None:
            cause = "" if error.__cause__ is None else _first_line(error.__cause__)
            reason += f" {cause}" if cause not in reason else ""
            hint = f"look at the connection, and at {ENDPOINT} where it is set; the same command goes on"
            return HubUnreachableError(f"the Hub cannot be reached: {reason}", where=where, hint=hint)
        if status == 412:
            hint = "the same command again compares with what is there now"
            return HubError("somebody else has published here meanwhile", where=where, hint=hint)
        if status == 429 or status >= 500:
            hint = "it is the Hub's fault, and passes: the same command later goes on"
            return HubUnreachableError(f"the Hub fails: {reason}", where=where, hint=hint)
        page = f"huggingface.co/datasets/{self.name}"
        hint = f"if it is gated, accept its terms at {page}, then `hf auth login`"
        if write:
            hint = "log in by `hf auth login` with a token that may write there; the same command goes on"
        return HubError(f"the Hub refuses: {reason}", where=where, hint=hint)


def huggingface_home() -> Path:
    """Return the folder of the caches of Hugging Face's libraries."""
    folder = os.environ.get("HF_HOME")
    if folder:
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface"


def benchmarks_among(paths: Iterable[str]) -> list[str]:
    """Return the folders of a repository with a ``manifest.json``, sorted."""
    return sorted(
        path.partition("/")[0] for path in paths if path.endswith("/manifest.json") and path.count("/") == 1
    )


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error; None without an answer."""
    cause: BaseException | None = error
    while cause is not None:
        response = getattr(cause, "response", None)
        status = getattr(cause, "status", None) or getattr(response, "status_code", None)
        if isinstance(status, int):
            return status
        cause = cause.__cause__
    return None


def _first_line(error: BaseException) -> str:
    return printable((str(error).strip().splitlines() or [type(error).__name__])[0])


SCHEME = "hf://datasets/"
MAIN = "main"
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"({_PART}/{_PART})(?:@({_PART}))?(?:/([a-z0-9][a-z0-9-]*))?")


@dataclass(frozen=True)
class Address:
    """A dataset repository at a revision, or a single benchmark in it.

    Attributes
    ----------
    repo : ``ORG/NAME``.
    revision : a tag, a branch or a commit.
    benchmark : None for all.
    """

    repo: str
    revision: str = MAIN
    benchmark: str | None = None

    def __str__(self) -> str:
        below = f"/{self.benchmark}" if self.benchmark else ""
        return f"{SCHEME}{self.repo}@{self.revision}{below}"

    @property
    def folder(self) -> Path:
        """The folder in the user's cache for benchmarks of this revision."""
        return pulled_folder() / f"{self.repo.replace('/', '--')}@{self.revision}"


@dataclass(frozen=True)
class FolderAddress:
    """A folder of published benchmarks with its ``SHA256SUMS``, or a single benchmark in it.

    Attributes
    ----------
    repo : the absolute path of the folder.
    benchmark : None for all.
    """

    repo: str
    benchmark: str | None = None
    revision: ClassVar[str] = ""

    def __str__(self) -> str:
        return f"{self.repo}/{self.benchmark}" if self.benchmark else self.repo

    @property
    def folder(self) -> Path:
        """Return where benchmarks of this folder are kept: in the user's cache."""
        return pulled_folder() / f"folder-{hashlib.sha256(self.repo.encode()).hexdigest()[:32]}"


def is_address(name: object) -> bool:
    """Return whether a benchmark is named by its address on the Hub."""
    return str(name).startswith(SCHEME)


def pulled_folder() -> Path:
    """Return the folder of all pulled benchmarks."""
    return Path(platformdirs.user_cache_dir("wordnet-splits")) / "hub"


def parse_address(text: str, *, where: str) -> Address:
    """Parse an address, with or without ``hf://datasets/``."""
    match = _ADDRESS.fullmatch(text.removeprefix(SCHEME).removesuffix("/"))
    if match is None or ".." in text or "--" in match[1]:
        raise SplitsError(
            f"{printable(text)!r} names no repository",
            where=where,
            hint="as in ORG/NAME, ORG/NAME@v1, hf://datasets/ORG/NAME@v1/unknown-cifar",
        )
    return Address(match[1], match[2] or MAIN, match[3])
