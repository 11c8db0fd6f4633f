"""A dataset's copy on the Hugging Face Hub: its files at one commit, compared with the Hub's SHA-256."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from wordnet_splits.errors import SourceError, SplitsError
from wordnet_splits.lazy import need
from wordnet_splits.progress import Progress
from wordnet_splits.sources.info import SourceInfo
from wordnet_splits.untrusted import below, printable, sha256_of

LARGEST: Final = 1 << 40
ENDPOINT: Final = "HF_ENDPOINT"
"""The variable of `huggingface_hub` that names another address than the Hub's."""


def fetch_from_hub(
    info: SourceInfo, folder: Path, *, progress: Progress
) -> tuple[str, dict[str, tuple[int, bool]]]:
    """Fetch the files of a source's Hub copy into ``folder``.

    Returns
    -------
    the repository with its commit, and of each file its size in bytes and whether it was received now.

    Raises
    ------
    MissingPackageError : huggingface_hub is not installed. SourceError : there is no copy, no access or no
        connection, or a file is not the one that the Hub describes.
    """
    if info.hub is None:
        hint = f"leave --hub out, or: {info.how}"
        raise SourceError("no copy on the Hub is known that is read here", where=info.name, hint=hint)
    library = need("huggingface_hub", "hub", where="--hub")
    repo = info.hub.repo
    try:
        api = library.HfApi(endpoint=os.environ.get(ENDPOINT) or None)
        commit = api.dataset_info(repo).sha
        listed = api.list_repo_tree(repo, recursive=True, repo_type="dataset", revision=commit)
        wanted = [file for file in listed if fnmatch(file.path, info.hub.files) and hasattr(file, "size")]
        if not wanted:
            raise SourceError(f"holds no {info.hub.files}", where=_address(repo, commit))
        found = {}
        with progress.task(f"fetching {repo}", len(wanted)) as task:
            for file in sorted(wanted, key=lambda file: file.path):
                found[file.path] = _fetched(api, repo, commit, file, folder)
                task.advance()
    except SplitsError:
        raise
    except Exception as error:  # the library's own, and those of whichever HTTP client its version uses
        raise _refused(repo, error) from None
    return _address(repo, commit), found


def _address(repo: str, commit: str) -> str:
    return f"datasets/{repo}@{commit}"


def _fetched(api: Any, repo: str, commit: str, file: Any, folder: Path) -> tuple[int, bool]:
    path = below(folder, file.path)
    received = not _is(file, path)
    if received:
        api.hf_hub_download(repo, file.path, repo_type="dataset", revision=commit, local_dir=folder)
        if not _is(file, path):
            path.unlink(missing_ok=True)
            raise SourceError(
                "what was received is not the file that the Hub describes",
                where=f"{_address(repo, commit)}/{file.path}",
                hint="it was removed: try again",
            )
    return file.size, received


def _is(file: Any, path: Path) -> bool:
    """Return whether ``path`` is the file; a small one that Git holds has a size only."""
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    return file.lfs is None or sha256_of(path, largest=LARGEST) == file.lfs.sha256


def _refused(repo: str, error: Exception) -> SourceError:
    reason = printable(error).splitlines()[0]
    return SourceError(
        f"the Hub refuses: {reason}",
        where=f"datasets/{repo}",
        hint=f"if it is gated, accept its terms at huggingface.co/datasets/{repo}, then `hf auth login`",
    )
