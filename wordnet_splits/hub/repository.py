"""One dataset repository of the Hub, through `huggingface_hub`: what it holds, and changes of it.

The token is the library's own affair (``hf auth login``, ``HF_TOKEN``): it is never asked for, read or shown.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wordnet_splits.errors import DataError, HubError, SplitsError
from wordnet_splits.lazy import need
from wordnet_splits.untrusted import below, check_regular, opened, printable, sha256_of

LARGEST: Final = 1 << 40
PIECE: Final = 1 << 20
ENDPOINT: Final = "HF_ENDPOINT"
"""The variable of `huggingface_hub` that names another address than the Hub's."""


@dataclass(frozen=True)
class RemoteFile:
    """A file as the Hub describes it: its bytes, and SHA-256 where it is large, else Git's SHA-1 of it."""

    path: str
    size: int
    sha256: str | None
    blob: str

    def is_at(self, path: Path) -> bool:
        """Return whether the file at ``path`` is this one."""
        if not path.is_file() or check_regular(path, largest=LARGEST) != self.size:
            return False
        if self.sha256 is not None:
            return sha256_of(path, largest=LARGEST) == self.sha256
        return git_blob(path) == self.blob


def git_blob(path: Path) -> str:
    """Return the SHA-1 by which Git names a file's content."""
    size = check_regular(path, largest=LARGEST)
    state = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with opened(path, largest=LARGEST) as file:
        while piece := file.read(PIECE):
            state.update(piece)
    return state.hexdigest()


class Repository:
    """A dataset repository by name, ``ORG/NAME``.

    Raises
    ------
    MissingPackageError : huggingface_hub is not installed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._library = need("huggingface_hub", "hub", where=f"datasets/{name}")
        self._utils = need("huggingface_hub.utils", "hub", where=f"datasets/{name}")
        if not sys.stderr.isatty():
            self._utils.disable_progress_bars()
        self._api = self._library.HfApi(endpoint=os.environ.get(ENDPOINT) or None)

    def where(self, path: str = "", *, commit: str = "") -> str:
        """Return a place in it as an error names it."""
        return f"datasets/{self.name}" + (f"@{commit}" if commit else "") + (f"/{path}" if path else "")

    def commit(self, revision: str) -> str | None:
        """Return the commit of a tag, branch or commit; None where there is none, or no such repository.

        A private repository that this user may not see is none.
        """
        errors = self._utils
        with self._asked():
            try:
                return str(self._api.dataset_info(self.name, revision=revision).sha)
            except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
                if isinstance(error, errors.GatedRepoError):
                    raise
                return None

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag."""
        with self._asked():
            refs = self._api.list_repo_refs(self.name, repo_type="dataset")
        return {ref.name: str(ref.target_commit) for ref in refs.tags}

    def files(self, commit: str) -> dict[str, RemoteFile]:
        """Return all files at a commit by path.

        Raises
        ------
        HubError : a path leaves the repository's folder.
        """
        with self._asked():
            listed = list(
                self._api.list_repo_tree(self.name, recursive=True, repo_type="dataset", revision=commit)
            )
        found = {}
        for file in listed:
            if not hasattr(file, "size"):
                continue
            try:
                below(Path("root"), file.path)
            except DataError:
                raise HubError(
                    f"the path {printable(file.path)!r} leaves its folder",
                    where=self.where(commit=commit),
                    hint="nothing was taken: tell whoever published it",
                ) from None
            sha256 = None if file.lfs is None else file.lfs.sha256
            found[file.path] = RemoteFile(file.path, file.size, sha256, file.blob_id)
        return found

    def card(self, file: RemoteFile, commit: str) -> dict[str, Any]:
        """Return the metadata that a dataset card begins with, empty without any."""
        path = self.cached(file, commit)
        with self._asked():
            held = self._library.metadata_load(path)
        return held if isinstance(held, dict) else {}

    def fetch(self, file: RemoteFile, commit: str, folder: Path) -> Path:
        """Return a file below ``folder``, received unless it is there already.

        Raises
        ------
        HubError : what was received is not what the Hub describes.
        """
        path = below(folder, file.path)
        if file.is_at(path):
            return path
        with self._asked():
            self._api.hf_hub_download(
                self.name, file.path, repo_type="dataset", revision=commit, local_dir=folder
            )
        if not file.is_at(path):
            path.unlink(missing_ok=True)
            raise HubError(
                "what was received is not the file that the Hub describes",
                where=self.where(file.path, commit=commit),
                hint="it was removed: try again",
            )
        return path

    def cached(self, file: RemoteFile, commit: str, *, check: bool = True) -> Path:
        """Return a file in the cache of `huggingface_hub`, received unless it is there already.

        Parameters
        ----------
        check : compare its digest; without, its size alone.

        Raises
        ------
        HubError : it is not what the Hub describes, or it is not there and the Hub does not answer.
        """
        with self._asked():
            path = Path(
                self._api.hf_hub_download(
                    self.name, file.path, repo_type="dataset", revision=commit, cache_dir=hub_cache()
                )
            )
        if not (file.is_at(path) if check else path.stat().st_size == file.size):
            raise HubError(
                "is not the file that the Hub describes", where=str(path), hint="remove it, and try again"
            )
        return path

    def create(self, *, private: bool) -> None:
        """Make the repository, unless it is there."""
        with self._asked(write=True):
            self._api.create_repo(self.name, repo_type="dataset", private=private, exist_ok=True)

    def change(
        self, added: Mapping[str, Path], removed: Sequence[str], *, parent: str | None, message: str
    ) -> str:
        """Put files into the repository and take others out in one commit on its main branch; return that.

        Refused by the Hub where the branch has gone on from ``parent``.
        """
        library = self._library
        operations: list[Any] = [library.CommitOperationAdd(path, str(file)) for path, file in added.items()]
        operations += [library.CommitOperationDelete(path) for path in removed]
        with self._asked(write=True):
            done = self._api.create_commit(
                self.name, operations, commit_message=message, repo_type="dataset", parent_commit=parent
            )
        return str(done.oid)

    def tag(self, name: str, commit: str) -> None:
        """Give a commit a name that stays."""
        with self._asked(write=True):
            self._api.create_tag(self.name, tag=name, revision=commit, repo_type="dataset")

    @contextmanager
    def _asked(self, *, write: bool = False) -> Iterator[None]:
        """Turn whatever the library, or the HTTP client of its version, raises into one line."""
        try:
            yield
        except SplitsError:
            raise
        except Exception as error:
            told = _first_line(error)
            cause = "" if error.__cause__ is None else _first_line(error.__cause__)
            if cause not in told and not isinstance(error, self._utils.HfHubHTTPError):
                told += f" {cause}"
            page = f"huggingface.co/datasets/{self.name}"
            hint = f"if it is gated, accept its terms at {page}, then `hf auth login`"
            if write:
                hint = "log in by `hf auth login` with a token that may write there; the same command goes on"
            raise HubError(f"the Hub refuses: {told}", where=self.where(), hint=hint) from None


def hub_cache() -> Path:
    """Return the folder in which `huggingface_hub` keeps what it received, as its variables say now."""
    given = os.environ.get("HF_HUB_CACHE")
    return Path(given).expanduser() if given else huggingface_home() / "hub"


def huggingface_home() -> Path:
    """Return the folder of the caches of Hugging Face's libraries."""
    given = os.environ.get("HF_HOME")
    if given:
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface"


def benchmarks_among(paths: Iterable[str]) -> list[str]:
    """Return the folders of a repository that hold a ``manifest.json``, sorted."""
    return sorted(
        path.partition("/")[0] for path in paths if path.endswith("/manifest.json") and path.count("/") == 1
    )


def _first_line(error: BaseException) -> str:
    return printable((str(error).strip().splitlines() or [type(error).__name__])[0])
