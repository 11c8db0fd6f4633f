"""Publish a release: in a repository of the Hub in one commit with a tag that never moves, or as a folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import HubError, HubUnreachableError, ManifestError, OutputError
from wordnet_splits.base.files import locked, replacing_folder, restore, write_text
from wordnet_splits.base.names import listed
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.base.untrusted import LARGEST_TEXT
from wordnet_splits.benchmark.manifest.frozen_values import changed_values
from wordnet_splits.benchmark.manifest.metadata import check_data
from wordnet_splits.benchmark.pulling import SUMS, PublishedFolder, Store, sums_of
from wordnet_splits.hub.attribution import CITATION, citation_cff
from wordnet_splits.hub.card import EVAL, card_of, eval_yaml
from wordnet_splits.hub.croissant import FILE, croissant_of
from wordnet_splits.hub.release import CARD, Release
from wordnet_splits.remote import MAIN, Address, FolderAddress, Repository, benchmarks_among

PublishedFiles = Mapping[str, Any]
"""Each a `RemoteFile` or a `ListedFile`, by its path in the repository or folder."""


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
    tagged: bool = False
    sent: bool = False
    not_compared: str = ""

    @property
    def differs(self) -> bool:
        """Whether any file differs from the published ones."""
        return bool(self.added or self.changed or self.removed)

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
    address: Address,
    release: Release,
    *,
    tag: str | None = None,
    private: bool = False,
    dry_run: bool = False,
) -> Publication:
    """Publish a release in a repository; only differing files are sent, in one commit.

    Files of the release's benchmarks and results that it no longer has are removed; other files of the
    repository stay. Publishing the same release again changes nothing.

    Parameters
    ----------
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
    repository = Repository(address.repo)
    address = Address(address.repo, tag or MAIN)
    with tempfile.TemporaryDirectory() as folder:
        local = {**release.files, **_described(release, address, Path(folder))}
        try:
            head = repository.resolve(MAIN)
            remote = repository.files(head) if head else {}
        except HubUnreachableError as error:
            if not dry_run:
                raise
            return replace(_compare(address, release, local, {}), not_compared=error.what)
        if head and tag and (tagged := repository.tags().get(tag)):
            changes = _compare(address, release, local, repository.files(tagged))
            _check_tag(changes, tag, repository)
            return replace(changes, commit=tagged)
        _check_others(repository, remote, release)
        changes = replace(_compare(address, release, local, remote), commit=head)
        if head:
            _check_versions(repository, head, remote, changes, release, Path(folder))
        if dry_run or not (changes.differs or tag):
            return changes
        if head is None:
            repository.create(private=private)
            head = repository.resolve(MAIN)
        if changes.differs:
            message = f"{tag or 'update'}: {listed(release.names, 3)}"
            sent = {path: local[path] for path in (*changes.added, *changes.changed)}
            head = repository.commit(sent, changes.removed, parent=head, message=message)
        if tag and head:
            repository.tag(tag, head)
    return replace(changes, commit=head, tagged=bool(tag), sent=True)


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
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not dry_run:
            stack.enter_context(locked(to, busy="another `hub publish` is writing here"))
            restore(to)
        local = {**release.files, **_described(release, address, temporary)}
        sums = sums_of(local)
        remote: PublishedFiles = {}
        if _has_files(to):
            store = PublishedFolder(str(to.resolve()))
            remote = store.files("")
            _check_unaltered(to, remote)
            _check_others(store, remote, release)
        changes = _compare(FolderAddress(str(to.resolve())), release, local, remote)
        if remote:
            _check_versions(store, "", remote, changes, release, temporary)
        if dry_run or not changes.differs:
            return changes
        with replacing_folder(to) as part:
            for path, file in local.items():
                (part / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, part / path)
            write_text(part / SUMS, sums)
    return replace(changes, sent=True)


def _has_files(to: Path) -> bool:
    """Return whether ``to`` is a published folder, to be replaced."""
    hint = "give a new folder, or one that `hub publish --out` wrote"
    if to.exists() and not to.is_dir():
        raise OutputError("is a file, not a folder", where=str(to), hint=hint)
    if not to.is_dir() or not any(to.iterdir()):
        return False
    if not (to / SUMS).is_file():
        raise OutputError(f"holds other files, and no {SUMS}", where=str(to), hint=hint)
    return True


def _check_unaltered(to: Path, remote: PublishedFiles) -> None:
    """Refuse to replace a folder with files that were not published, or that were altered since."""
    paths = {p.relative_to(to).as_posix() for p in to.rglob("*") if p.is_symlink() or not p.is_dir()}
    hint = "move your files away, or give another folder"
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


def _compare(
    address: Address | FolderAddress, release: Release, local: Mapping[str, Path], remote: PublishedFiles
) -> Publication:
    """Return the changes of the published files; other files of a repository are not removed."""
    folders = {path.partition("/")[0] for path in release.files}
    added, removed = local.keys() - remote.keys(), remote.keys() - local.keys()
    if isinstance(address, Address):
        removed = {path for path in removed if path.partition("/")[0] in folders}
    same = {path for path in local.keys() - added if remote[path].is_at(local[path])}
    changed = local.keys() - added - same
    states = [sorted(paths) for paths in (added, changed, removed, same)]
    return Publication(address, release.names, None, states[0], states[1], states[2], states[3])


def _check_tag(changes: Publication, tag: str, repository: Repository) -> None:
    """Refuse a tag with other contents: a tag never moves."""
    differing = [*changes.added, *changes.changed, *changes.removed]
    if differing:
        raise HubError(
            f"the tag {tag} is published with other files: {min(differing)}"
            + (f" and {len(differing) - 1:,} more" if len(differing) > 1 else ""),
            where=repository.where(),
            hint="a tag never moves: choose the next one",
        )


def _check_others(store: Store, remote: PublishedFiles, release: Release) -> None:
    """Refuse to leave benchmarks out that are published: the card would no longer name them."""
    if lost := sorted(set(benchmarks_among(remote)) - set(release.names)):
        raise HubError(
            f"it contains {', '.join(lost)}, which this release would drop",
            where=store.where(),
            hint="give their folders, too, or publish somewhere else",
        )


def _check_versions(
    store: Store, head: str, remote: PublishedFiles, changes: Publication, release: Release, folder: Path
) -> None:
    """Refuse to change a published value under its version."""
    for manifest in release.benchmarks:
        path = f"{manifest.name}/manifest.json"
        if path not in changes.changed:
            continue
        file = store.fetch(remote[path], head, folder / "published", largest=LARGEST_TEXT)
        before = check_data(read_json(file, error=ManifestError), store.where(path, commit=head))
        if changed := changed_values(before, manifest.data):
            raise ManifestError(
                f"version {manifest.version} is published, and {changed[0]} would change",
                where=manifest.name,
                hint="raise `version` in the recipe and say why in the changelog",
            )
