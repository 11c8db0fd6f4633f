"""A dataset's copy on the Hugging Face Hub: its files at one commit, compared with the Hub's digests."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from wordnet_splits.base.errors import HubError, SourceError
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.untrusted import path_below
from wordnet_splits.hub.address import MAIN
from wordnet_splits.hub.repository import Repository
from wordnet_splits.sources.info import SourceInfo


def fetch_from_hub(
    info: SourceInfo, folder: Path, *, progress: Progress
) -> tuple[str, dict[str, tuple[int, bool]]]:
    """Fetch the files of a source's Hub copy into ``folder``.

    Returns
    -------
    the repository with its commit, and of each file its size in bytes and whether it was received now.

    Raises
    ------
    MissingPackageError : huggingface_hub is not installed. SourceError : there is no copy. HubError : no
        access or no connection, or a file is not the one that the Hub describes.
    """
    if info.hub is None:
        hint = f"leave --hub out, or: {info.how}"
        raise SourceError("no copy on the Hub is known that is read here", where=info.name, hint=hint)
    repository = Repository(info.hub.repo)
    commit = repository.commit(MAIN)
    if commit is None:
        raise HubError("the Hub has no such dataset", where=repository.where(), hint=info.how)
    listed = repository.files(commit)
    wanted = [file for path, file in sorted(listed.items()) if fnmatch(path, info.hub.files)]
    if not wanted:
        raise HubError(f"holds no {info.hub.files}", where=repository.where(commit=commit))
    found = {}
    with progress.task(f"fetching {repository.name}", len(wanted)) as task:
        for file in wanted:
            held = file.is_at(path_below(folder, file.path))
            repository.fetch(file, commit, folder)
            found[file.path] = file.size, not held
            task.advance()
    return repository.where(commit=commit), found
