"""List folders of a dataset: never out of the root, never in circles, with clear refusals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from wordnet_splits.base.errors import SourceError, UnsafeDataError
from wordnet_splits.base.text_formats import DEEPEST
from wordnet_splits.base.untrusted import check_link, expand_home, unreadable

LONE_LEVELS = 3  # root/dtd/dtd/images: archives are unpacked into folders of the same name


def check_root(root: Path, name: str | None, *, hint: str | None = None) -> Path:
    """Return ``root`` resolved, if it is a folder that can be listed and is not empty.

    Parameters
    ----------
    name : source of the images, for the error; None if they have no name yet.

    Raises SourceError if the root is absent, a file, unreadable, empty, or holds a link to a folder above it.
    """
    subject = f"the root of source {name}" if name else "the folder of images"
    try:
        folder = expand_home(root, where=subject).resolve(strict=True)
        if not folder.is_dir():
            raise SourceError(f"{subject} is a file, not a folder", where=str(root), hint=hint)
        with os.scandir(folder) as listed:
            visible = [entry for entry in listed if not entry.name.startswith(".")]
    except FileNotFoundError as error:
        raise SourceError(f"{subject} does not exist", where=str(root), hint=hint) from error
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise unreadable(subject, str(root), error) from error
    if not visible:
        raise SourceError(f"{subject} is empty", where=str(root), hint=hint)
    for entry in visible:
        _usable(entry, folder, needed=False)
    return folder


def entries(
    folder: Path | str,
    root: Path,
    is_needed: Callable[[str], bool] = lambda name: True,
    *,
    broken_links: bool = False,
) -> Iterator[os.DirEntry[str]]:
    """Yield the visible entries of ``folder``; links are followed only inside ``root``.

    A link that leads out of the root is ignored unless ``is_needed`` accepts its name; a broken link is also
    ignored unless ``broken_links`` is set.

    Raises
    ------
    SourceError : the folder cannot be listed, a link leads back to a folder above it, or folders are nested
        more than `DEEPEST` deep.
    UnsafeDataError : a needed link leads out of ``root``.
    """
    if str(folder).count(os.sep) - str(root).count(os.sep) > DEEPEST:
        raise SourceError(f"folders are nested more than {DEEPEST} deep", where=str(root))
    try:
        with os.scandir(folder) as listed:
            for entry in listed:
                if entry.name.startswith("."):
                    continue
                if not entry.is_symlink() or _usable(entry, root, is_needed(entry.name), broken_links):
                    yield entry
    except OSError as error:
        raise unreadable("the folder", str(folder), error) from error


def _usable(entry: os.DirEntry[str], root: Path, needed: bool, broken_links: bool = False) -> bool:
    if not entry.is_symlink():
        return True
    try:
        check_link(entry.path, root)
    except FileNotFoundError:
        return needed and broken_links
    except UnsafeDataError:
        if needed:
            raise
        return False
    return True


def folders(folder: Path | str, root: Path) -> list[str]:
    """Return the names of the visible folders directly in ``folder``, sorted."""
    return sorted(entry.name for entry in entries(folder, root) if entry.is_dir())


def subfolder(base: Path, name: str, root: Path) -> Path | None:
    """Return ``base/name`` if it is a folder, None if not; links on the way are checked as in `entries`."""
    path = base
    try:
        for step in Path(name).parts:
            path = path / step
            if path.is_symlink():
                check_link(path, root)
        return path if path.is_dir() else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable("the folder", str(path), error) from error


def bases(root: Path, *names: str) -> list[Path]:
    """Return the folders where a dataset may begin: ``root``, named folders in it, and lone subfolders."""
    candidates: list[Path] = []
    level: Path | None = root
    for _ in range(LONE_LEVELS):
        if level is None:
            break
        candidates += [level, *(folder for name in names if (folder := subfolder(level, name, root)))]
        level = _lone(level)
    return list(dict.fromkeys(candidates))


def _lone(folder: Path) -> Path | None:
    try:
        with os.scandir(folder) as listed:
            inside = [
                e.name for e in listed if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)
            ]
    except OSError as error:
        raise unreadable("the folder", str(folder), error) from error
    return folder / inside[0] if len(inside) == 1 else None
