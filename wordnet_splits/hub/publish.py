"""Publish a release: in a repository of the Hub in one commit with a tag that never moves, or as a folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import HubError, HubUnreachableError, ManifestError, OutputError, SplitsError
from wordnet_splits.base.files import locked, replacing_folder, restore, write_text
from wordnet_splits.base.names import listed
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.untrusted import LARGEST_TEXT
from wordnet_splits.benchmark.manifest.diff import changed_values
from wordnet_splits.benchmark.manifest.metadata import check_data
from wordnet_splits.benchmark.pulling import Store
from wordnet_splits.hub.attribution import CITATION, citation_cff
from wordnet_splits.hub.card import card_of
from wordnet_splits.hub.croissant import FILE, croissant_of
from wordnet_splits.hub.hub_benchmark import EVAL, eval_yaml
from wordnet_splits.hub.published_folder import SUMS, ListedFile, PublishedFolder, sums_of
from wordnet_splits.hub.release import CARD, Release
from wordnet_splits.remote.address import MAIN, Address, FolderAddress
from wordnet_splits.remote.repository import RemoteFile, Repository, benchmarks_among


@dataclass(frozen=True)
class Publication(Tabular):
    """The result of `publish`.

    Attributes
    ----------
    address : the repository at the tag, or at its main branch; or the folder.
    commit : commit of the main branch or tag; None if nothing was sent, and of a folder.
    added, changed, removed, same : paths in the repository.
    tagged : whether the tag was created now.
    sent : whether anything was sent; False in a dry run.
    not_compared : in a dry run, why the repository could not be read; all files are then ``added``.
    """

    address: Address | FolderAddress
    benchmarks: Sequence[str]
    commit: str | None
    added: Sequence[str]
    changed: Sequence[str]
    removed: Sequence[str]
    same: Sequence[str]
    tagged: bool
    sent: bool
    not_compared: str = ""

    def rows(self) -> list[dict[str, Any]]:
        """Return path and state of each file."""
        states = {name: getattr(self, name) for name in ("added", "changed", "removed", "same")}
        return sorted(
            ({"path": path, "state": state} for state, paths in states.items() for path in paths),
            key=lambda row: row["path"],
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what ``hub publish --json`` prints."""
        return {**vars(self), "address": str(self.address)}


def publish(
    address: Address | None,
    release: Release,
    *,
    to: Path | None = None,
    tag: str | None = None,
    private: bool = False,
    dry_run: bool = False,
) -> Publication:
    """Publish a release in a repository; only differing files are sent, in one commit.

    With ``to`` it is written as a folder instead, by `publish_folder`. Files of the release's benchmarks and
    results that it no longer has are removed; other files of the repository stay.
    Publishing the same release again changes nothing.

    Parameters
    ----------
    address : the repository; None only with ``to``.
    tag : tag of the commit; None for a commit without a tag.
    private : if the repository does not exist, create it visible to its owners only.
    dry_run : only return what would be done.

    Raises
    ------
    MissingPackageError : huggingface_hub is not installed.
    HubError : the Hub refuses; the repository has benchmarks that the release lacks; or the tag exists with
        other contents.
    ManifestError : a frozen value would change under its version.
    """
    if to is not None:
        named = None if address is None else Address(address.repo, tag or MAIN)
        return publish_folder(release, to, address=named, dry_run=dry_run)
    if address is None:
        raise SplitsError("nothing says where to publish", hint="give a repository, ORG/NAME, or to=FOLDER")
    repository = Repository(address.repo)
    tagged_address = Address(address.repo, tag or MAIN)
    with tempfile.TemporaryDirectory() as folder:
        local = {**release.files, **_described(release, tagged_address, Path(folder))}
        try:
            head = repository.resolve(MAIN)
            remote = repository.files(head) if head else {}
        except HubUnreachableError as error:
            if not dry_run:
                raise
            return replace(
                _publication(tagged_address, release, None, local, local, []), not_compared=error.what
            )
        if head and tag and (tagged := repository.tags().get(tag)):
            _check_tag(repository, tag, tagged, local, release)
            return _publication(tagged_address, release, tagged, {}, local, [])
        _check_others(repository, remote, release)
        differing = {p: file for p, file in local.items() if p not in remote or not remote[p].is_at(file)}
        removed = sorted(p for p in remote if p not in local and _is_of_release(p, release))
        if head:
            _check_versions(repository, head, remote, differing, release, Path(folder))
        if dry_run or not (differing or removed or tag):
            return _publication(tagged_address, release, head, differing, local, removed, remote=remote)
        if head is None:
            repository.create(private=private)
            head = repository.resolve(MAIN)
        commit = head
        if differing or removed:
            message = f"{tag or 'update'}: {listed(release.names, 3)}"
            commit = repository.commit(differing, removed, parent=head, message=message)
        if tag and commit:
            repository.tag(tag, commit)
    return _publication(
        tagged_address, release, commit, differing, local, removed, remote=remote, tagged=bool(tag), sent=True
    )


def publish_folder(
    release: Release, to: Path, *, address: Address | None = None, dry_run: bool = False
) -> Publication:
    """Write the files that would be uploaded into a folder, with ``SHA256SUMS``, in one step.

    Publishing the same release again changes nothing. A folder that was published here is replaced.

    Parameters
    ----------
    address : the repository that the card names; without it, the card explains how to read a folder.
    dry_run : only return what would be done.

    Raises
    ------
    OutputError : the folder holds files that were not published here, or that were altered since.
    HubError : it has benchmarks that the release lacks.
    ManifestError : a frozen value would change under its version; ``SHA256SUMS`` is malformed.
    """
    folder_address = FolderAddress(str(to.resolve()))
    with tempfile.TemporaryDirectory() as temporary, _writing(to, dry_run=dry_run):
        local = {**release.files, **_described(release, address, Path(temporary))}
        sums = sums_of(local)
        remote: Mapping[str, ListedFile] = {}
        if _has_files(to):
            store = PublishedFolder(folder_address)
            remote = store.files("")
            _check_unaltered(to, remote)
            _check_others(store, remote, release)
        differing = {p: file for p, file in local.items() if p not in remote or not remote[p].is_at(file)}
        removed = sorted(remote.keys() - local.keys())
        if remote:
            _check_versions(store, "", remote, differing, release, Path(temporary))
        changes = bool(differing or removed) and not dry_run
        if changes:
            with replacing_folder(to) as part:
                for path, file in local.items():
                    (part / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, part / path)
                write_text(part / SUMS, sums)
        return _publication(
            folder_address, release, None, differing, local, removed, remote=remote, sent=changes
        )


@contextmanager
def _writing(to: Path, *, dry_run: bool) -> Iterator[None]:
    """Lock a folder that is to be published, except in a dry run."""
    if dry_run:
        yield
        return
    with locked(to, busy="another `hub publish` is writing here"):
        restore(to)
        yield


def _has_files(to: Path) -> bool:
    """Return whether ``to`` is a published folder, to be replaced.

    Raises
    ------
    OutputError : it is a file, or a folder of something else.
    """
    hint = "give a new folder, or one that `hub publish --to` wrote"
    if to.exists() and not to.is_dir():
        raise OutputError("is a file, not a folder", where=str(to), hint=hint)
    if not to.is_dir() or not any(to.iterdir()):
        return False
    if not (to / SUMS).is_file():
        raise OutputError(f"holds other files, and no {SUMS}", where=str(to), hint=hint)
    return True


def _check_unaltered(to: Path, remote: Mapping[str, ListedFile]) -> None:
    """Refuse to replace a folder with files that were not published, or that were altered since."""
    paths = {p.relative_to(to).as_posix() for p in to.rglob("*") if p.is_symlink() or not p.is_dir()}
    hint = "move what is yours away, or give another folder"
    if foreign := sorted(paths - remote.keys() - {SUMS}):
        raise OutputError(f"holds {foreign[0]}, which was not published here", where=str(to), hint=hint)
    if altered := sorted(p for p in remote.keys() & paths if not remote[p].is_at(to / p)):
        raise OutputError(f"{altered[0]} was altered since it was published", where=str(to), hint=hint)


def _described(release: Release, address: Address | None, folder: Path) -> dict[str, Path]:
    """Write the card, the citation and Croissant metadata; return them by path in the repository."""
    url = None if address is None else f"https://huggingface.co/datasets/{address.repo}"
    name = address.repo.partition("/")[2] if address else release.title
    texts = {CARD: card_of(release, address), CITATION: citation_cff(release.benchmarks, name, url)}
    if address is not None and release.leaderboard:
        texts[EVAL] = eval_yaml(release, name)
    for manifest in release.benchmarks:
        text = croissant_of(manifest, metadata=release.metadata, url=url)
        texts[f"{manifest.name}/{FILE}"] = text
    for path, text in texts.items():
        write_text(folder / path, text)
    return {path: folder / path for path in texts}


def _publication(
    address: Address | FolderAddress,
    release: Release,
    commit: str | None,
    differing: Mapping[str, Path],
    local: Mapping[str, Path],
    removed: Sequence[str],
    *,
    remote: Mapping[str, RemoteFile | ListedFile] | None = None,
    tagged: bool = False,
    sent: bool = False,
) -> Publication:
    added = sorted(path for path in differing if path not in (remote or {}))
    changed = sorted(path for path in differing if path in (remote or {}))
    same = sorted(path for path in local if path not in differing)
    return Publication(
        address, release.names, commit, added, changed, list(removed), same, tagged=tagged, sent=sent
    )


def _is_of_release(path: str, release: Release) -> bool:
    return path.partition("/")[0] in {file.partition("/")[0] for file in release.files}


def _check_tag(
    repository: Repository, tag: str, commit: str, local: Mapping[str, Path], release: Release
) -> None:
    """Refuse a tag with other contents: a tag never moves."""
    remote = repository.files(commit)
    differing = [path for path, file in local.items() if path not in remote or not remote[path].is_at(file)]
    differing += [path for path in remote if path not in local and _is_of_release(path, release)]
    if differing:
        raise HubError(
            f"the tag {tag} is published and holds something else: {min(differing)}"
            + (f" and {len(differing) - 1:,} more files" if len(differing) > 1 else ""),
            where=repository.where(),
            hint="a tag never moves: choose the next one",
        )


def _check_others(store: Store, remote: Mapping[str, RemoteFile | ListedFile], release: Release) -> None:
    """Refuse to leave benchmarks out that are published: the card would no longer name them."""
    if lost := sorted(set(benchmarks_among(remote)) - set(release.names)):
        raise HubError(
            f"it holds {', '.join(lost)}, which you do not give",
            where=store.where(),
            hint="give their folders, too, or publish somewhere else",
        )


def _check_versions(
    store: Store,
    head: str,
    remote: Mapping[str, RemoteFile | ListedFile],
    differing: Mapping[str, Path],
    release: Release,
    folder: Path,
) -> None:
    """Refuse to change a published value under its version."""
    for manifest in release.benchmarks:
        path = f"{manifest.name}/manifest.json"
        if path not in remote or path not in differing:
            continue
        file = store.fetch(remote[path], head, folder / "published", largest=LARGEST_TEXT)
        before = check_data(read_json(file, error=ManifestError), store.where(path, commit=head))
        if changed := changed_values(before, manifest.data):
            raise ManifestError(
                f"version {manifest.version} is published, and {changed[0]} would change",
                where=manifest.name,
                hint="raise `version` in the recipe and say why in the changelog",
            )
